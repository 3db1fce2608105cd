// The interactive timeline: reading the spans of a step, which lanes and which stretch of time are
// shown, and words for a span. Spans are columns of numbers (timeline_data.hpp).
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
const gutter = 120, laneGap = 8, computeHeight = 34, stripHeight = 9, right = 12, headHeight = 22;
let view = {from: 0, to: 1};     // ns
let hovered = -1, selected = -1; // spans
let wanted = null;               // a search: {kinds: Uint8Array, microBatches: Set}
let lanes = [];                  // {top, bottom, folded, strips: {strip: [top, height]}}
let heads = [];                  // of replicas: {replica, top}; none if there is one
let folded = new Set();          // replicas

function layoutLanes() {
  const present = new Set(line.rows.map((r) => r.strip));
  const several = new Set(line.step.lanes.map((l) => l.replica)).size > 1;
  let y = 4, replica = -1;
  heads = [];
  lanes = line.step.lanes.map((lane) => {
    if (several && lane.replica !== replica) {
      heads.push({replica: lane.replica, top: y});
      y += headHeight;
    }
    replica = lane.replica;
    const strips = {}, top = y;
    if (several && folded.has(replica)) return {...lane, top, bottom: y, folded: true, strips};
    for (let strip = 0; strip < data.strips; ++strip) {
      if (strip !== 0 && !present.has(strip)) continue;
      const height = strip === 0 ? computeHeight : stripHeight;
      strips[strip] = [y, height];
      y += height + 2;
    }
    y += laneGap;
    return {...lane, top, bottom: y - laneGap, folded: false, strips};
  });
  canvas.style.height = y + 4 + 'px';
  $('fold').hidden = !several;
  $('fold').textContent = folded.size ? 'Unfold replicas' : 'Fold replicas';
}
function fold(replicas) {
  folded = new Set(replicas);
  layoutLanes();
  requestDraw();
}

const width = () => canvas.clientWidth - gutter - right;
const scale = () => width() / (view.to - view.from);
const xOf = (t) => gutter + (t - view.from) * scale();
const timeAt = (x) => view.from + (x - gutter) / scale();

function setView(from, to) {
  if (!line) return;  // not unpacked yet
  const end = line.step.end, least = Math.min(end, 100);  // at most 100 ns across
  let span = Math.min(Math.max(to - from, least), end);
  from = Math.min(Math.max(from, 0), end - span);
  view = {from, to: from + span};
  requestDraw();
}
function zoom(factor, around = (view.from + view.to) / 2) {
  setView(around - (around - view.from) * factor, around + (view.to - around) * factor);
}
const whole = () => setView(0, Infinity);
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
  const out = [[kind.kind + (kind.name === kind.kind ? '' : ': ' + kind.name), '']];
  if (line.microBatch[span] >= 0) out.push(['micro-batch', line.microBatch[span]]);
  if (line.chunk[span] >= 0) out.push(['chunk', line.chunk[span]]);
  out.push(['takes', duration(line.end[span] - line.start[span])]);
  out.push(['from', duration(line.start[span])], ['to', duration(line.end[span])]);
  if (line.bytes[span] > 0) out.push(['bytes', size(line.bytes[span])]);
  out.push(['on', (heads.length ? `replica ${lane.replica}, ` : '') + lane.label + ', ' + lane.ranks + ', ' + row.stream]);
  return out;
}
const lines = (span) => words(span).map(([key, value]) => (value === '' ? key : key + ' ' + value));
