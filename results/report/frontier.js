// GPU-days against time: each point a circle in the colour of its strategy, the frontier a line.
const svg = (name, attributes, ...children) => {
  const out = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, v] of Object.entries(attributes)) out.setAttribute(key, v);
  out.append(...children);
  return out;
};
// Okabe and Ito; black follows the page's ink.
const strategyColours = ['#0072b2', '#e69f00', '#009e73', '#d55e00', '#cc79a7', '#56b4e9', 'currentColor', '#999999'];
const strategies = distinct('strategy' in columns ? 'strategy' : 'run', all.filter(fitting));
const colourOf = (point) => strategyColours[strategies.indexOf(value('strategy' in columns ? 'strategy' : 'run', point)) % strategyColours.length];

// From the quickest on, those that need fewer GPU-days than all quicker ones.
function frontier(points) {
  const out = [];
  const sorted = [...points].sort((a, b) => value('days', a) - value('days', b) || value('gpu_days', a) - value('gpu_days', b));
  for (const p of sorted) if (out.length === 0 || value('gpu_days', p) < value('gpu_days', out[out.length - 1])) out.push(p);
  return out;
}

function ticksOf(low, high) {
  const out = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); ++power)
    for (const f of [1, 2, 5]) {
      const v = f * 10 ** power;
      if (v >= low && v <= high) out.push(v);
    }
  return out;
}

function drawFrontier() {
  const points = shown.filter((p) => fitting(p) && value('days', p) > 0 && value('gpu_days', p) > 0);
  if (points.length === 0) return $('frontier').replaceChildren('No point fits.');
  const w = Math.max(320, Math.min(900, $('frontier').clientWidth)), h = 420, left = 70, bottom = 50, edge = 16;
  const range = (name) => {
    const [low, high] = extent(points.map((p) => value(name, p)));
    return [low / 1.15, high * 1.15];
  };
  const [x0, x1] = range('days'), [y0, y1] = range('gpu_days');
  const xAt = (v) => left + (w - left - edge) * Math.log(v / x0) / Math.log(x1 / x0);
  const yAt = (v) => h - bottom - (h - bottom - edge) * Math.log(v / y0) / Math.log(y1 / y0);
  const picture = svg('svg', {viewBox: `0 0 ${w} ${h}`, width: w, height: h, role: 'img', 'aria-label': 'GPU-days against wall-clock days'});
  const text = (x, y, words, anchor = 'middle', more = {}) => svg('text', {x, y, 'text-anchor': anchor, fill: 'currentColor', 'font-size': 13, ...more}, words);
  for (const v of ticksOf(x0, x1)) picture.append(svg('line', {x1: xAt(v), x2: xAt(v), y1: edge, y2: h - bottom, class: 'grid'}), text(xAt(v), h - bottom + 18, String(Number(v.toPrecision(2)))));
  for (const v of ticksOf(y0, y1)) picture.append(svg('line', {x1: left, x2: w - edge, y1: yAt(v), y2: yAt(v), class: 'grid'}), text(left - 8, yAt(v) + 4, String(Number(v.toPrecision(2))), 'end'));
  picture.append(text((left + w) / 2, h - 8, columns.days.words), text(0, 0, columns.gpu_days.words, 'middle', {transform: `translate(16 ${(h - bottom) / 2}) rotate(-90)`}));
  const best = frontier(points), front = new Set(best);
  picture.append(svg('polyline', {points: best.map((p) => `${xAt(value('days', p))},${yAt(value('gpu_days', p))}`).join(' '), class: 'front'}));
  for (const p of points) {
    const on = front.has(p);
    const dot = svg('circle', {cx: xAt(value('days', p)), cy: yAt(value('gpu_days', p)), r: p === chosen ? 9 : on ? 6 : 4, fill: colourOf(p), 'data-point': p, 'data-front': on, class: p === chosen ? 'chosen' : ''});
    dot.addEventListener('click', () => choose(p));
    dot.addEventListener('pointermove', (e) => showTip([describe(p), `${figure('gpu_days', value('gpu_days', p))} GPU-days`, `${figure('days', value('days', p))} days on ${value('gpus', p)} GPUs`], e.pageX, e.pageY));
    dot.addEventListener('pointerleave', () => { tip.hidden = true; });
    picture.append(dot);
  }
  $('frontier').replaceChildren(picture);
}
$('legend').replaceChildren(...strategies.map((s, i) => element('li', {}, svg('svg', {width: 14, height: 14, 'aria-hidden': 'true'}, svg('circle', {cx: 7, cy: 7, r: 6, fill: strategyColours[i % strategyColours.length]})), s)));
redraws.push(drawFrontier);
