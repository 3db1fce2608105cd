// What a reader does with the page: light and dark, mouse and keys, search, choosing a run and a step.
// It follows timeline.js in the same function.

// --- light and dark ---

const dark = () => {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
};
const remember = (theme) => {
  try { localStorage.setItem('mllmsim-theme', theme); } catch (e) { /* a page without storage */ }
};
try {
  const before = localStorage.getItem('mllmsim-theme');
  if (before) document.documentElement.dataset.theme = before;
} catch (e) { /* a page without storage */ }
const showTheme = () => {
  $('theme').textContent = dark() ? 'Light' : 'Dark';
  $('theme').setAttribute('aria-label', dark() ? 'Switch to light colours' : 'Switch to dark colours');
  if (line) legend();
  requestDraw();
};
$('theme').addEventListener('click', () => {
  document.documentElement.dataset.theme = dark() ? 'light' : 'dark';
  remember(document.documentElement.dataset.theme);
  showTheme();
});
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', showTheme);

// --- mouse and keys ---

function spanAt(x, y) {
  if (!line || x < gutter) return -1;
  const slack = 2 / scale(), t = timeAt(x);
  for (const row of line.rows) {
    const [top, height] = lanes[row.lane].strips[row.strip];
    if (y < top || y >= top + height) continue;
    const i = firstAfter(row, t - slack);
    if (i >= row.last || line.start[i] > t + slack) continue;
    // Of those within the slack the one under the pointer.
    for (let k = i; k < row.last && line.start[k] <= t; ++k) if (line.end[k] > t) return k;
    return i;
  }
  return -1;
}

const tip = $('tip');
function hover(x, y, pageX, pageY) {
  const span = spanAt(x, y);
  if (span !== hovered) {
    hovered = span;
    requestDraw();
  }
  tip.hidden = span < 0;
  if (span < 0) return;
  tip.replaceChildren(...words(span).map(([key, value], i) => {
    const row = document.createElement('div');
    if (i === 0) row.className = 'what';
    row.textContent = value === '' ? key : key + ' ' + value;
    return row;
  }));
  const left = Math.min(pageX + 14, document.documentElement.clientWidth - tip.offsetWidth - 8);
  tip.style.left = Math.max(4, left) + 'px';
  tip.style.top = pageY + 18 + 'px';
}
function select(span, show) {
  selected = span;
  $('details').textContent = span < 0 ? '' : sentence(span);
  if (span >= 0 && show) {
    const middle = (line.start[span] + line.end[span]) / 2, half = (view.to - view.from) / 2;
    const room = Math.max(2 * (line.end[span] - line.start[span]), 100);
    if (line.start[span] < view.from || line.end[span] > view.to) setView(middle - half, middle + half);
    if (room > view.to - view.from) setView(middle - room, middle + room);
    if ((line.end[span] - line.start[span]) * scale() < 3) setView(middle - 20 * room, middle + 20 * room);
  }
  requestDraw();
}

let drag = null;
canvas.addEventListener('pointerdown', (e) => {
  if (e.button !== 0) return;
  drag = {x: e.offsetX, moved: false};
  canvas.setPointerCapture(e.pointerId);
});
canvas.addEventListener('pointermove', (e) => {
  if (drag) {
    const by = e.offsetX - drag.x;
    if (Math.abs(by) > 3 || drag.moved) {
      drag.moved = true;
      tip.hidden = true;
      canvas.classList.add('dragging');
      setView(view.from - by / scale(), view.to - by / scale());
      drag.x = e.offsetX;
    }
    return;
  }
  hover(e.offsetX, e.offsetY, e.pageX, e.pageY);
});
canvas.addEventListener('pointerup', (e) => {
  canvas.classList.remove('dragging');
  if (drag && !drag.moved) select(spanAt(e.offsetX, e.offsetY), false);
  drag = null;
});
canvas.addEventListener('pointercancel', () => { drag = null; canvas.classList.remove('dragging'); });
canvas.addEventListener('pointerleave', () => { hovered = -1; tip.hidden = true; requestDraw(); });
canvas.addEventListener('dblclick', (e) => zoom(1 / 4, timeAt(e.offsetX)));
canvas.addEventListener('wheel', (e) => {
  // The page scrolls unless the timeline was clicked first or Ctrl is held.
  if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) {
    e.preventDefault();
    pan((e.deltaX || e.deltaY) / 1000);
  } else if (e.ctrlKey || e.metaKey || document.activeElement === canvas) {
    e.preventDefault();
    zoom(Math.exp(e.deltaY / 400), timeAt(e.offsetX));
  }
}, {passive: false});

function neighbour(by) {
  if (selected < 0) return firstAfter(line.rows[0], view.from);
  const row = rowOf(selected);
  return Math.min(Math.max(selected + by, row.first), row.last - 1);
}
function otherRow(by) {
  const at = Math.max(0, line.rows.indexOf(selected < 0 ? line.rows[0] : rowOf(selected)) + by);
  const row = line.rows[Math.min(at, line.rows.length - 1)];
  const t = selected < 0 ? view.from : line.start[selected];
  return Math.min(firstAfter(row, t), row.last - 1);
}
const keys = {
  'ArrowLeft': () => pan(-0.1), 'ArrowRight': () => pan(0.1), 'a': () => pan(-0.1), 'd': () => pan(0.1),
  '+': () => zoom(1 / 1.5), '=': () => zoom(1 / 1.5), 'w': () => zoom(1 / 1.5),
  '-': () => zoom(1.5), 's': () => zoom(1.5), '0': () => setView(0, line.step.end), 'Home': () => setView(0, line.step.end),
  '.': () => select(neighbour(1), true), ',': () => select(neighbour(-1), true),
  'ArrowDown': () => select(otherRow(1), true), 'ArrowUp': () => select(otherRow(-1), true),
  'n': () => nextMatch(1), 'p': () => nextMatch(-1), 'Escape': () => select(-1, false),
};
canvas.addEventListener('keydown', (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || !keys[e.key] || !line) return;
  e.preventDefault();
  keys[e.key]();
});
$('zoom-in').addEventListener('click', () => zoom(1 / 2));
$('zoom-out').addEventListener('click', () => zoom(2));
$('zoom-all').addEventListener('click', () => setView(0, line.step.end));

// --- search ---

const matches = (i) => wanted.kinds[line.kind[i]] === 1 || line.microBatch[i] === wanted.microBatch;
function search() {
  const text = $('search').value.trim().toLowerCase();
  wanted = null;
  $('found').textContent = '';
  if (text && line) {
    const number = /^(?:mb|micro-?batch|#)?\s*(\d+)$/.exec(text);
    wanted = {
      kinds: Uint8Array.from(line.step.kinds, (k) => (number ? 0 : `${k.kind} ${k.name} ${looks[k.look].name}`.toLowerCase().includes(text) ? 1 : 0)),
      microBatch: number ? Number(number[1]) : -2,
    };
    let count = 0, time = 0;
    for (let i = 0; i < line.n; ++i) if (matches(i)) { ++count; time += line.end[i] - line.start[i]; }
    $('found').textContent = count ? `${count.toLocaleString('en')} spans, ${duration(time)} in all` : 'nothing found';
  }
  requestDraw();
}
function nextMatch(by) {
  if (!wanted || !line) return;
  let at = selected < 0 ? (by > 0 ? -1 : 0) : selected;
  for (let k = 0; k < line.n; ++k) {
    at = (at + by + line.n) % line.n;
    if (matches(at)) return select(at, true);
  }
}
$('search').addEventListener('input', search);
$('search').addEventListener('keydown', (e) => {
  if (e.key === 'Enter') { e.preventDefault(); nextMatch(e.shiftKey ? -1 : 1); }
});

// --- choosing what is shown ---

function legend() {
  const used = [...new Set(line.step.kinds.map((k) => k.look))].sort((a, b) => a - b);
  $('legend').replaceChildren(...used.map((l) => {
    const item = document.createElement('li'), mark = document.createElement('canvas');
    mark.width = 24;
    mark.height = 14;
    const c = mark.getContext('2d');
    c.fillStyle = paint(l, dark());
    c.fillRect(0, 0, 24, 14);
    mark.setAttribute('aria-hidden', 'true');
    item.append(mark, looks[l].name);
    return item;
  }));
}

async function show() {
  const run = data.runs[$('run').value], step = run && run.steps[$('step').value];
  if (!step) return;
  const zoomed = line && view.to - view.from < 0.999 * line.step.end;
  line = await decode(step);
  layoutLanes();
  hovered = selected = -1;
  tip.hidden = true;
  $('details').textContent = '';
  // The same stretch of time if it was zoomed, so that strategies can be compared; else all of it.
  if (zoomed) setView(view.from, view.to);
  else setView(0, step.end);
  const hidden = [];
  if (step.lanes_left_out) hidden.push(`${step.lanes_left_out} lanes of other replicas`);
  if (run.left_out) hidden.push(`${run.left_out} more steps`);
  $('hidden').textContent = hidden.length ? 'Not in this page: ' + hidden.join(', ') + '.' : '';
  canvas.setAttribute('aria-label', `Timeline of ${run.name}, ${run.strategy}, step ${step.step}: ` +
    `${step.lanes.length} lanes, ${step.spans} spans, ${duration(step.end)}`);
  legend();
  search();
}
function steps() {
  const run = data.runs[$('run').value];
  $('step').replaceChildren(...run.steps.map((s, i) => new Option(`step ${s.step}`, i)));
  $('step').parentElement.hidden = run.steps.length < 2;
  return show();
}
const complain = (e) => { $('details').textContent = 'The timeline cannot be shown: ' + e.message; };

showTheme();
const shown = data.runs.map((run, i) => [run, i]).filter(([run]) => run.steps.length > 0);
$('run').replaceChildren(...shown.map(([run, i]) => new Option(`${run.name} (${run.strategy})`, i)));
if (shown.length === 0) {
  $('timeline-section').hidden = true;
} else {
  $('run').addEventListener('change', () => steps().catch(complain));
  $('step').addEventListener('change', () => show().catch(complain));
  new ResizeObserver(requestDraw).observe(canvas);
  steps().catch(complain);
}
// What the browser test looks at.
window.mllmsimTimeline = {
  get view() { return {...view}; }, get drawn() { return stats.drawn; }, get frames() { return stats.frames; },
  get spans() { return line ? line.n : 0; }, get gutter() { return gutter; }, lanes: () => lanes, setView, draw,
};
