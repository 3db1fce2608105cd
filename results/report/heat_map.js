// A figure over two keys: each cell has the best of the points that share its two values.
const highIsGood = (name) => ['mfu', 'hfu', 'samples_per_s', 'tokens_per_s_per_gpu'].includes(name);

// Viridis, which colour-blind readers can follow from dark to light. [background, text]
function heat(share) {
  const ramp = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];
  const at = Math.min(Math.max(share, 0), 1) * (ramp.length - 1), low = Math.min(Math.floor(at), ramp.length - 2);
  const rgb = ramp[low].map((v, c) => Math.round(v + (ramp[low + 1][c] - v) * (at - low)));
  return [`rgb(${rgb})`, share < 0.45 ? '#ffffff' : '#000000'];
}

function options(select, names, wanted) {
  select.replaceChildren(...names.map((n) => new Option(plain(n), n)));
  select.value = names.includes(wanted) ? wanted : names[0];
  select.addEventListener('change', drawHeat);
}

function drawHeat() {
  const name = $('heat-figure').value, x = $('heat-x').value, y = $('heat-y').value;
  const better = highIsGood(name) ? (a, b) => a > b : (a, b) => a < b;
  const best = new Map();  // "x value|y value": a point
  for (const p of shown) {
    const v = value(name, p), place = JSON.stringify([value(x, p), value(y, p)]);
    if (!fitting(p) || v === null) continue;
    if (!best.has(place) || better(v, value(name, best.get(place)))) best.set(place, p);
  }
  const [low, high] = extent([...best.values()].map((p) => value(name, p)));
  const xs = distinct(x, shown), ys = distinct(y, shown);
  const cell = (vx, vy) => {
    const point = best.get(JSON.stringify([vx, vy]));
    if (point === undefined) return element('td', {class: 'soft'}, '-');
    const v = value(name, point), share = high > low ? (v - low) / (high - low) : 0;
    const [back, ink] = heat(highIsGood(name) ? share : 1 - share);  // light is good
    const out = element('td', {tabindex: 0, role: 'button', 'data-point': point, title: describe(point), style: `background:${back};color:${ink}`}, figure(name, v));
    if (point === chosen) out.className = 'chosen';
    out.addEventListener('click', () => choose(point));
    out.addEventListener('keydown', (e) => { if (e.key === 'Enter') choose(point); });
    return out;
  };
  const head = element('tr', {}, element('th', {}, `${plain(y)} \\ ${plain(x)}`), ...xs.map((v) => element('th', {scope: 'col'}, String(v))));
  $('heat').replaceChildren(element('table', {class: 'heat'}, element('caption', {}, `${columns[name].words}; lighter is better`), element('thead', {}, head),
    element('tbody', {}, ...ys.map((vy) => element('tr', {}, element('th', {scope: 'row'}, String(vy)), ...xs.map((vx) => cell(vx, vy)))))));
}

const axes = keys.length ? keys : ['gpus'], numbers = axes.filter((k) => k !== 'strategy');
options($('heat-figure'), ['gpu_days', 'days', 'iteration_s', 'mfu', 'samples_per_s', 'bubble_share', 'peak_memory_bytes'], 'gpu_days');
options($('heat-x'), axes, numbers[numbers.length - 1]);
options($('heat-y'), axes, numbers.length > 1 ? numbers[0] : 'strategy');
redraws.push(drawHeat);
