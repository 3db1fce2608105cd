// Drawing what a screen can show of a timeline.
//
// A frame finds the first visible span of each row by binary search and draws those at least a pixel
// wide as they are; thinner ones are drawn together, each pixel as what fills most of it, so that a
// frame draws at most a few boxes a pixel and row however many spans there are.
const patterns = new Map();
const causes = () => $('causes').checked;  // work is pale, idle time coloured by its cause
function paint(look, night) {
  const key = look + (night ? 'd' : 'l') + (causes() ? 'c' : '');
  if (patterns.has(key)) return patterns.get(key);
  const {colour, fill, bubble, alone} = looks[look];
  let made = colour;
  if (causes()) {
    made = bubble ? alone : night ? '#2d333b' : '#dfe3e8';
  } else if (fill !== 'solid') {
    const tile = document.createElement('canvas');
    tile.width = tile.height = 8;
    const c = tile.getContext('2d');
    c.fillStyle = night ? '#161a1f' : '#ffffff';
    c.fillRect(0, 0, 8, 8);
    c.strokeStyle = colour;
    c.lineWidth = 2;
    c.beginPath();
    for (const d of [-8, 0, 8]) {
      if (fill !== 'falling') { c.moveTo(d - 1, 9); c.lineTo(d + 9, -1); }
      if (fill !== 'rising') { c.moveTo(d - 1, -1); c.lineTo(d + 9, 9); }
    }
    c.stroke();
    made = context.createPattern(tile, 'repeat');
  } else if (night && colour === '#000000') {
    made = '#f5f5f5';
  }
  patterns.set(key, made);
  return made;
}

// Of a frame: boxes by look, those that a search left out apart, four numbers each; and the spans of
// a row that have room for a text.
let boxes = [], roomy = [];
function collect(row, top, height) {
  const {start, end, look} = line, perNs = scale(), from = view.from, to = view.to, L = looks.length;
  const time = collect.time, seen = collect.seen;
  let cell = -1, lastLook = -1, lastEnd = -1;
  roomy = [];
  const close = () => {
    if (cell < 0 || seen.length === 0) return;
    let best = seen[0];
    for (const l of seen) if (time[l] > time[best]) best = l;
    for (const l of seen) time[l] = 0;
    seen.length = 0;
    const list = boxes[best];
    if (lastLook === best && lastEnd === cell) list[list.length - 2] += 1;
    else list.push(gutter + cell, top, 1, height);
    lastLook = best;
    lastEnd = cell + 1;
  };
  for (let i = firstAfter(row, from); i < row.last && start[i] < to; ++i) {
    const x = (Math.max(start[i], from) - from) * perNs, w = (Math.min(end[i], to) - from) * perNs - x;
    let l = look[i], weight = end[i] - start[i];
    if (wanted) {
      if (matches(i)) weight *= 1e6;  // found ones are seen however short they are
      else l += L;
    }
    if (w >= 1) {
      boxes[l].push(gutter + x, top, w, height);
      if (w >= 12 && l < L) roomy.push(i);
      continue;
    }
    const at = Math.floor(x);
    if (at !== cell) { close(); cell = at; }
    if (time[l] === 0) seen.push(l);
    time[l] += weight;
  }
  close();
}

// Marks of the time axis: {at, text}.
function ticks() {
  const across = view.to - view.from, most = Math.max(2, Math.floor(width() / 64));
  let step = Math.pow(10, Math.floor(Math.log10(across / most)));
  for (const f of [1, 2, 5, 10]) if (across / (step * f) <= most) { step *= f; break; }
  const [unit, per] = across >= 1e9 ? ['s', 1e9] : across >= 1e6 ? ['ms', 1e6] : across >= 1e3 ? ['µs', 1e3] : ['ns', 1];
  const decimals = Math.max(0, Math.ceil(-Math.log10(step / per) - 1e-9)), out = [];
  for (let k = Math.ceil(view.from / step); k * step <= view.to; ++k) out.push({at: k * step, text: (k * step / per).toFixed(decimals) + ' ' + unit});
  return out;
}

// A canvas of its own, so that it stays in view above lanes that do not.
const axis = $('axis'), axisContext = axis.getContext('2d', {alpha: false});
function drawAxis(colours) {
  const [w, h] = fit(axis, axisContext);
  axisContext.fillStyle = colours.page;
  axisContext.fillRect(0, 0, w, h);
  axisContext.fillStyle = colours.ink;
  axisContext.textBaseline = 'middle';
  axisContext.textAlign = 'left';
  axisContext.fillText('time', 4, h / 2);
  axisContext.textAlign = 'center';
  for (const {at, text} of ticks()) {
    const x = xOf(at);
    axisContext.fillRect(Math.round(x), h - 5, 1, 5);
    if (x > gutter + 8 && x < w - 24) axisContext.fillText(text, x, h / 2 - 2);
  }
}

function drawText(i, top, height, night) {
  const from = Math.max(line.start[i], view.from), to = Math.min(line.end[i], view.to), px = (to - from) * scale();
  const kind = line.step.kinds[line.kind[i]], look = looks[line.look[i]], microBatch = line.microBatch[i];
  if (look.bubble || causes()) return;
  let text = microBatch >= 0 ? String(microBatch) : kind.name;
  const longer = kind.name + (microBatch >= 0 ? ' ' + microBatch : '');
  if (px > 7 * longer.length + 10) text = longer;
  if (!text || px < 7 * text.length + 4) return;
  context.fillStyle = look.dark !== (night && look.colour === '#000000') ? '#ffffff' : '#000000';
  context.fillText(text, (xOf(from) + xOf(to)) / 2, top + height / 2 + 1);
}

function outline(span, colour) {
  const row = span < 0 ? null : rowOf(span);
  if (!row || lanes[row.lane].folded || line.end[span] < view.from || line.start[span] > view.to) return;
  const [top, height] = lanes[row.lane].strips[row.strip];
  const from = Math.max(xOf(line.start[span]), gutter), to = Math.min(xOf(line.end[span]), gutter + width());
  context.strokeStyle = colour;
  context.lineWidth = 2;
  context.strokeRect(from - 1, top - 1, Math.max(2, to - from) + 2, height + 2);
}

const stats = {drawn: 0, frames: 0};
let asked = false;
function requestDraw() {
  if (asked || !line) return;
  asked = true;
  requestAnimationFrame(() => { asked = false; draw(); });
}

// The canvas at the screen's resolution; its width and height in CSS pixels.
function fit(target, to) {
  const ratio = devicePixelRatio || 1, w = target.clientWidth, h = target.clientHeight;
  if (target.width !== Math.round(w * ratio)) target.width = Math.round(w * ratio);
  if (target.height !== Math.round(h * ratio)) target.height = Math.round(h * ratio);
  to.setTransform(ratio, 0, 0, ratio, 0, 0);
  to.font = '12px system-ui, sans-serif';
  return [w, h];
}

function drawSpans(night) {
  boxes = Array.from({length: 2 * looks.length}, () => []);
  collect.time = new Float64Array(2 * looks.length);
  collect.seen = [];
  const texts = [];
  for (const row of line.rows) {
    if (lanes[row.lane].folded) continue;
    const [top, height] = lanes[row.lane].strips[row.strip];
    collect(row, top, height);
    if (row.strip === 0) texts.push([roomy, top, height]);
  }
  stats.drawn = 0;
  for (let l = 2 * looks.length - 1; l >= 0; --l) {  // those that a search left out first
    const list = boxes[l];
    if (list.length === 0) continue;
    context.globalAlpha = l >= looks.length ? 0.15 : 1;
    context.fillStyle = paint(l % looks.length, night);
    const edges = !looks[l % looks.length].bubble;
    for (let i = 0; i < list.length; i += 4) {
      const wide = edges && list[i + 2] > 5 ? 1 : 0;  // neighbours of one look stay apart
      context.fillRect(list[i], list[i + 1], list[i + 2] - wide, list[i + 3]);
    }
    stats.drawn += list.length / 4;
  }
  context.globalAlpha = 1;
  context.textAlign = 'center';
  context.textBaseline = 'middle';
  for (const [spans, top, height] of texts) for (const i of spans) drawText(i, top, height, night);
}

function drawNames(h, colours) {
  context.fillStyle = colours.page;
  context.fillRect(0, 0, gutter - 1, h);
  context.textAlign = 'left';
  context.textBaseline = 'middle';
  for (const {replica, top} of heads) {
    context.fillStyle = colours.ink;
    context.fillText(`${folded.has(replica) ? '▸' : '▾'} replica ${replica}`, 4, top + headHeight / 2, gutter - 8);
    context.fillStyle = colours.faint;
    context.fillRect(0, top, canvas.clientWidth, 1);
  }
  for (const lane of lanes) {
    if (lane.folded) continue;
    const [top, height] = lane.strips[0], indent = heads.length ? 14 : 4;
    context.fillStyle = colours.ink;
    context.fillText(lane.label, indent, top + height / 2 - 7, gutter - indent - 4);
    context.fillStyle = colours.soft;
    context.fillText(lane.ranks, indent, top + height / 2 + 8, gutter - indent - 4);
  }
}

// What was measured: a line at each end, and the time between them.
function drawRuler(h, colours) {
  if (ruler.length === 0) return;
  context.fillStyle = colours.ink;
  for (const t of ruler) if (xOf(t) >= gutter) context.fillRect(Math.round(xOf(t)), 0, 1, h);
  if (ruler.length < 2) return;
  const [from, to] = [...ruler].sort((a, b) => a - b), middle = Math.min(Math.max((xOf(from) + xOf(to)) / 2, gutter + 40), canvas.clientWidth - 40);
  const text = duration(to - from), half = context.measureText(text).width / 2 + 5;
  const start = Math.max(gutter, xOf(from));
  context.globalAlpha = 0.12;
  context.fillRect(start, 0, Math.max(0, xOf(to) - start), h);
  context.globalAlpha = 1;
  context.fillRect(middle - half, 4, 2 * half, 18);
  context.fillStyle = colours.page;
  context.textAlign = 'center';
  context.fillText(text, middle, 13);
}

function draw() {
  const night = dark(), [w, h] = fit(canvas, context);
  const colours = night ? {page: '#161a1f', ink: '#c9d1d9', soft: '#8b949e', faint: '#2d333b'} :
    {page: '#ffffff', ink: '#222222', soft: '#666666', faint: '#e4e4e4'};
  context.fillStyle = colours.page;
  context.fillRect(0, 0, w, h);
  context.fillStyle = colours.faint;
  for (const {at} of ticks()) context.fillRect(Math.round(xOf(at)), 0, 1, h);
  drawSpans(night);
  outline(selected, night ? '#ffffff' : '#000000');
  if (hovered !== selected) outline(hovered, night ? '#ffffff' : '#000000');
  drawNames(h, colours);
  drawRuler(h, colours);
  drawAxis(colours);
  ++stats.frames;
  $('range').textContent = `${duration(view.from)} to ${duration(view.to)} of ${duration(line.step.end)}`;
}
