// The interactive timeline: reading spans, and drawing what a screen can show of them.
//
// Spans are columns of numbers (timeline_data.hpp). A frame finds the first visible span of each row
// by binary search and draws those at least a pixel wide as they are; thinner ones are drawn
// together, each pixel as what fills most of it, so that a frame draws at most a few boxes a pixel and
// row however many spans there are. CMake puts this and page.js into one function; no libraries, no
// network.
const $ = (id) => document.getElementById(id);
const data = JSON.parse($('data').textContent);
const looks = data.looks, streams = data.streams;
let line = null;  // the decoded step that is shown

// --- reading a step ---

async function unpack(base64) {
  const packed = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Response(stream).arrayBuffer();
}

async function decode(step) {
  if (step.decoded) return step.decoded;
  const n = step.spans, buffer = await unpack(step.blob);
  let at = 0;
  const column = (Type) => {
    const values = new Type(buffer, at, n);
    at += n * Type.BYTES_PER_ELEMENT;
    return values;
  };
  const gap = column(Float64Array), duration = column(Float64Array), bytes = column(Float64Array);
  const microBatch = column(Int32Array), kind = column(Uint16Array), chunk = column(Int16Array);
  const start = new Float64Array(n), end = new Float64Array(n), look = new Uint16Array(n);
  let first = 0;
  const rows = step.rows.map((row) => {
    const {name, strip} = streams[row.stream];
    const out = {...row, stream: name, strip, first, last: first + row.spans};
    let time = 0;
    for (let i = first; i < out.last; ++i) {
      start[i] = time + gap[i];
      time = end[i] = start[i] + duration[i];
      look[i] = step.kinds[kind[i]].look;
    }
    first = out.last;
    return out;
  });
  step.decoded = {step, n, start, end, bytes, microBatch, kind, chunk, look, rows};
  delete step.blob;
  return step.decoded;
}

// --- state ---

const canvas = $('timeline'), context = canvas.getContext('2d', {alpha: false});
const gutter = 120, axis = 28, laneGap = 8, computeHeight = 34, stripHeight = 9, right = 12;
let view = {from: 0, to: 1};     // ns
let hovered = -1, selected = -1; // spans
let wanted = null;               // a search: {kinds: Uint8Array, microBatch}
let lanes = [];                  // {top, strips: {strip: [top, height]}}
const stats = {drawn: 0, frames: 0};

function layoutLanes() {
  const present = new Set(line.rows.map((r) => r.strip));
  let y = 4;
  lanes = line.step.lanes.map((lane) => {
    const strips = {}, top = y;
    for (let strip = 0; strip < data.strips; ++strip) {
      if (strip !== 0 && !present.has(strip)) continue;
      const height = strip === 0 ? computeHeight : stripHeight;
      strips[strip] = [y, height];
      y += height + 2;
    }
    y += laneGap;
    return {...lane, top, bottom: y - laneGap, strips};
  });
  canvas.style.height = y + axis + 'px';
}

const width = () => canvas.clientWidth - gutter - right;
const scale = () => width() / (view.to - view.from);
const xOf = (t) => gutter + (t - view.from) * scale();
const timeAt = (x) => view.from + (x - gutter) / scale();

function setView(from, to) {
  const end = line.step.end, least = Math.min(end, 100);  // at most 100 ns across
  let span = Math.min(Math.max(to - from, least), end);
  from = Math.min(Math.max(from, 0), end - span);
  view = {from, to: from + span};
  requestDraw();
}
function zoom(factor, around = (view.from + view.to) / 2) {
  setView(around - (around - view.from) * factor, around + (view.to - around) * factor);
}
const pan = (share) => setView(view.from + share * (view.to - view.from), view.to + share * (view.to - view.from));

// The first span of a row that ends after t.
function firstAfter(row, t) {
  let low = row.first, high = row.last;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (line.end[middle] > t) high = middle; else low = middle + 1;
  }
  return low;
}

// --- words ---

function duration(ns) {
  const digits = (v) => (v >= 100 ? v.toFixed(1) : v >= 10 ? v.toFixed(2) : v.toFixed(3));
  if (ns >= 1e9) return digits(ns / 1e9) + ' s';
  if (ns >= 1e6) return digits(ns / 1e6) + ' ms';
  if (ns >= 1e3) return digits(ns / 1e3) + ' µs';
  if (ns === 0) return '0 s';
  return ns.toFixed(0) + ' ns';
}
function size(bytes) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let i = 0;
  while (bytes >= 1024 && i < 4) { bytes /= 1024; ++i; }
  return bytes.toFixed(i ? 1 : 0) + ' ' + units[i];
}
const rowOf = (span) => line.rows.find((r) => span < r.last);
function words(span) {
  const kind = line.step.kinds[line.kind[span]], row = rowOf(span), lane = line.step.lanes[row.lane];
  const out = [[looks[kind.look].bubble ? 'bubble: ' + kind.name : kind.kind + (kind.name === kind.kind ? '' : ': ' + kind.name), '']];
  if (line.microBatch[span] >= 0) out.push(['micro-batch', line.microBatch[span]]);
  if (line.chunk[span] >= 0) out.push(['chunk', line.chunk[span]]);
  out.push(['takes', duration(line.end[span] - line.start[span])]);
  out.push(['from', duration(line.start[span])], ['to', duration(line.end[span])]);
  if (line.bytes[span] > 0) out.push(['bytes', size(line.bytes[span])]);
  out.push(['on', lane.label + ', ' + lane.ranks + ', ' + row.stream]);
  return out;
}
const sentence = (span) => words(span).map(([key, value]) => (value === '' ? key : key + ' ' + value)).join(', ');

// --- drawing ---

const patterns = new Map();
function paint(look, night) {
  const key = look + (night ? 'd' : 'l');
  if (patterns.has(key)) return patterns.get(key);
  const {colour, fill} = looks[look];
  let made = colour;
  if (fill !== 'solid') {
    const tile = document.createElement('canvas');
    tile.width = tile.height = 8;
    const c = tile.getContext('2d');
    c.fillStyle = night ? '#24282d' : '#ffffff';
    c.fillRect(0, 0, 8, 8);
    c.strokeStyle = colour;
    c.lineWidth = 1.3;
    c.beginPath();
    for (const d of [-8, 0, 8]) {
      if (fill !== 'falling') { c.moveTo(d - 1, 9); c.lineTo(d + 9, -1); }
      if (fill !== 'rising') { c.moveTo(d - 1, -1); c.lineTo(d + 9, 9); }
    }
    c.stroke();
    made = context.createPattern(tile, 'repeat');
  } else if (night && looks[look].bubble) {
    made = '#3a4047';
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

function drawAxis(w, h, ink, faint) {
  const across = view.to - view.from;
  let step = Math.pow(10, Math.floor(Math.log10(across / 6)));
  for (const f of [1, 2, 5, 10]) if (across / (step * f) <= 9) { step *= f; break; }
  const [unit, per] = across >= 1e9 ? ['s', 1e9] : across >= 1e6 ? ['ms', 1e6] : across >= 1e3 ? ['µs', 1e3] : ['ns', 1];
  const decimals = Math.max(0, Math.ceil(-Math.log10(step / per) - 1e-9));
  context.textAlign = 'center';
  context.textBaseline = 'top';
  for (let k = Math.ceil(view.from / step); k * step <= view.to; ++k) {
    const x = xOf(k * step);
    context.fillStyle = faint;
    context.fillRect(Math.round(x), 0, 1, h - axis);
    if (x < gutter + 8 || x > gutter + w - 20) continue;
    context.fillStyle = ink;
    context.fillText((k * step / per).toFixed(decimals) + ' ' + unit, x, h - axis + 6);
  }
}

function drawText(i, top, height, night) {
  const from = Math.max(line.start[i], view.from), to = Math.min(line.end[i], view.to), px = (to - from) * scale();
  const kind = line.step.kinds[line.kind[i]], look = looks[line.look[i]], microBatch = line.microBatch[i];
  let text = microBatch >= 0 ? String(microBatch) : look.bubble ? '' : kind.name;
  const longer = kind.name + (microBatch >= 0 ? ' ' + microBatch : '');
  if (px > 7 * longer.length + 10) text = longer;
  if (!text || px < 7 * text.length + 4) return;
  context.fillStyle = look.bubble ? (night ? '#c9d1d9' : '#333333') : look.dark !== (night && look.colour === '#000000') ? '#ffffff' : '#000000';
  context.fillText(text, (xOf(from) + xOf(to)) / 2, top + height / 2 + 1);
}

function outline(span, colour) {
  const row = span < 0 ? null : rowOf(span);
  if (!row || line.end[span] < view.from || line.start[span] > view.to) return;
  const [top, height] = lanes[row.lane].strips[row.strip];
  const from = Math.max(xOf(line.start[span]), gutter), to = Math.min(xOf(line.end[span]), gutter + width());
  context.strokeStyle = colour;
  context.lineWidth = 2;
  context.strokeRect(from - 1, top - 1, Math.max(2, to - from) + 2, height + 2);
}

let asked = false;
function requestDraw() {
  if (asked || !line) return;
  asked = true;
  requestAnimationFrame(() => { asked = false; draw(); });
}

function draw() {
  const night = dark(), ratio = devicePixelRatio || 1;
  const w = canvas.clientWidth, h = canvas.clientHeight;
  if (canvas.width !== Math.round(w * ratio)) canvas.width = Math.round(w * ratio);
  if (canvas.height !== Math.round(h * ratio)) canvas.height = Math.round(h * ratio);
  const ink = night ? '#c9d1d9' : '#222222', faint = night ? '#2d333b' : '#e4e4e4';
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.font = '12px system-ui, sans-serif';
  context.fillStyle = night ? '#161a1f' : '#ffffff';
  context.fillRect(0, 0, w, h);
  drawAxis(width(), h, ink, faint);

  boxes = Array.from({length: 2 * looks.length}, () => []);
  collect.time = new Float64Array(2 * looks.length);
  collect.seen = [];
  const texts = [];
  for (const row of line.rows) {
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
  outline(selected, night ? '#ffffff' : '#000000');
  if (hovered !== selected) outline(hovered, night ? '#ffffff' : '#000000');

  context.fillStyle = night ? '#161a1f' : '#ffffff';
  context.fillRect(0, 0, gutter - 1, h);
  context.textAlign = 'left';
  context.textBaseline = 'middle';
  for (const lane of lanes) {
    const [top, height] = lane.strips[0];
    context.fillStyle = ink;
    context.fillText(lane.label, 4, top + height / 2 - 7, gutter - 8);
    context.fillStyle = night ? '#8b949e' : '#666666';
    context.fillText(lane.ranks, 4, top + height / 2 + 8, gutter - 8);
  }
  ++stats.frames;
  $('range').textContent = `${duration(view.from)} to ${duration(view.to)} of ${duration(line.step.end)}`;
}
