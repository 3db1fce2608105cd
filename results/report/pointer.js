// Mouse, touch and keys on the timeline, folding replicas and measuring.

function spanAt(x, y) {
  if (!line || x < gutter) return -1;
  const slack = 2 / scale(), t = timeAt(x);
  for (const row of line.rows) {
    if (lanes[row.lane].folded) continue;
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

function hover(x, y, pageX, pageY) {
  const span = spanAt(x, y);
  if (span !== hovered) {
    hovered = span;
    requestDraw();
  }
  tip.hidden = span < 0;
  if (span >= 0) showTip(lines(span), pageX, pageY);
}
function leave() {
  hovered = -1;
  tip.hidden = true;
  requestDraw();
}
function select(span, show) {
  selected = span;
  $('details').textContent = span < 0 ? '' : lines(span).join(', ');
  if (span >= 0 && show) {
    folded.delete(lanes[rowOf(span).lane].replica);
    layoutLanes();
    const middle = (line.start[span] + line.end[span]) / 2, half = (view.to - view.from) / 2;
    const room = Math.max(2 * (line.end[span] - line.start[span]), 100);
    if (line.start[span] < view.from || line.end[span] > view.to) setView(middle - half, middle + half);
    if (room > view.to - view.from) setView(middle - room, middle + room);
    if ((line.end[span] - line.start[span]) * scale() < 3) setView(middle - 20 * room, middle + 20 * room);
  }
  requestDraw();
}

// --- measuring between two clicks ---

let ruler = [], measuring = false;
function measure(on) {
  measuring = on;
  ruler = [];
  $('measure').setAttribute('aria-pressed', on);
  canvas.classList.toggle('measuring', on);
  $('details').textContent = on ? 'Click where to measure from.' : '';
  requestDraw();
}
// Edges of spans attract a click near them.
function measureAt(x, y) {
  const span = spanAt(x, y);
  let t = timeAt(Math.max(x, gutter));
  if (span >= 0) for (const edge of [line.start[span], line.end[span]]) if (Math.abs(xOf(edge) - x) < 6) t = edge;
  ruler = ruler.length === 1 ? [ruler[0], t] : [t];
  $('details').textContent = ruler.length === 1 ? `From ${duration(t)}. Click where to measure to.` :
    `${duration(Math.abs(ruler[1] - ruler[0]))} between ${duration(Math.min(...ruler))} and ${duration(Math.max(...ruler))}.`;
  requestDraw();
}
$('measure').addEventListener('click', () => measure(!measuring));

// --- pointer and keys ---

function click(x, y) {
  const head = heads.find((h) => y >= h.top && y < h.top + headHeight);
  if (head) {
    if (!folded.delete(head.replica)) folded.add(head.replica);
    fold(folded);
  } else if (measuring) {
    measureAt(x, y);
  } else {
    select(spanAt(x, y), false);
  }
}
$('fold').addEventListener('click', () => fold(folded.size ? [] : heads.map((h) => h.replica)));
$('causes').addEventListener('change', () => { legend(); requestDraw(); });

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
  if (e.pointerType !== 'touch') hover(e.offsetX, e.offsetY, e.pageX, e.pageY);
});
canvas.addEventListener('pointerup', (e) => {
  canvas.classList.remove('dragging');
  if (drag && !drag.moved) click(e.offsetX, e.offsetY);
  drag = null;
});
canvas.addEventListener('pointercancel', () => { drag = null; canvas.classList.remove('dragging'); });
canvas.addEventListener('pointerleave', leave);
canvas.addEventListener('blur', leave);
addEventListener('scroll', leave, {passive: true});
canvas.addEventListener('dblclick', (e) => measuring || zoom(1 / 4, timeAt(e.offsetX)));
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
  '-': () => zoom(1.5), 's': () => zoom(1.5), '0': whole, 'Home': whole,
  '.': () => select(neighbour(1), true), ',': () => select(neighbour(-1), true),
  'ArrowDown': () => select(otherRow(1), true), 'ArrowUp': () => select(otherRow(-1), true),
  'n': () => nextMatch(1), 'p': () => nextMatch(-1), 'm': () => measure(!measuring), 'Escape': () => { leave(); measure(false); select(-1, false); },
};
canvas.addEventListener('keydown', (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || !keys[e.key] || !line) return;
  e.preventDefault();
  keys[e.key]();
});
$('zoom-in').addEventListener('click', () => zoom(1 / 2));
$('zoom-out').addEventListener('click', () => zoom(2));
$('zoom-all').addEventListener('click', whole);
