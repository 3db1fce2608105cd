// A sweep's points: what filters leave of them, and the table that sorts.
const columns = data.columns, keys = data.keys;
const value = (name, point) => columns[name].values[point];
const plain = (name) => columns[name].words.replace(/ \(.*\)$/, '');
const fitting = (point) => value('fits', point) && value('simulated_steps', point) > 0;
const planned = (point) => value('simulated_steps', point) > 0;
// As results/text/figures.cpp tells them.
function pointsText(points) {
  const fit = points.filter(fitting).length, unplanned = points.filter((p) => !planned(p)).length, misfits = points.length - fit - unplanned;
  return `${points.length} ${points.length === 1 ? 'point' : 'points'}: ${fit} ${fit === 1 ? 'fits' : 'fit'}` +
    (misfits > 0 ? `, ${misfits} ${misfits === 1 ? 'does' : 'do'} not fit in memory` : '') + (unplanned > 0 ? `, ${unplanned} cannot be planned` : '');
}
const distinct = (name, points) => {
  const all = [...new Set(points.map((p) => value(name, p)))];
  return all.every((v) => typeof v === 'number') ? all.sort((a, b) => a - b) : all;
};
const all = Array.from({length: data.points}, (_, i) => i);
let shown = all;    // points that the filters leave
let chosen = -1;    // the point whose figures are shown
const redraws = []; // after a filter or a choice

// The smallest and largest; spreading very many values as arguments would overflow the stack.
const extent = (values) => values.reduce(([low, high], v) => [Math.min(low, v), Math.max(high, v)], [Infinity, -Infinity]);

// A figure as people read it, by the unit that its name carries.
function figure(name, v) {
  if (v === null || v === undefined) return '-';
  if (typeof v === 'boolean') return v ? 'yes' : 'no';
  if (typeof v !== 'number') return v;
  if (name.endsWith('_bytes')) return (v / 2 ** 30).toFixed(1) + ' GiB';
  if (name === 'mfu' || name === 'hfu' || name.includes('share')) return (100 * v).toFixed(1) + ' %';
  return Number.isInteger(v) ? String(v) : v >= 1000 ? v.toFixed(0) : String(Number(v.toPrecision(4)));
}
const describe = (point) => keys.map((k) => (k === 'strategy' ? '' : plain(k) + ' ') + value(k, point)).join(', ');

function choose(point) {
  chosen = point;
  for (const redraw of redraws) redraw();
}

// --- filters ---

const filters = new Map();  // key: the text of its value
function filter() {
  shown = all.filter((p) => [...filters].every(([key, text]) => text === '' || String(value(key, p)) === text));
  $('count').textContent = pointsText(shown);
  for (const redraw of redraws) redraw();
}
for (const key of keys) {
  const select = element('select', {'data-key': key}, new Option('all', ''), ...distinct(key, all).map((v) => new Option(v, v)));
  select.addEventListener('change', () => { filters.set(key, select.value); filter(); });
  $('filters').append(element('label', {}, plain(key) + ' ', select));
}

// --- the table ---

const tableColumns = [...keys, ...['gpus', 'iteration_s', 'gpu_days', 'days', 'cost', 'mfu', 'bubble_share', 'peak_memory_bytes'].filter((n) => n in columns && !keys.includes(n))];
const firstRows = 200;
let sortBy = 'gpu_days', rising = true, rows = firstRows;

// Points that do not fit come last, whatever the order.
function compare(a, b) {
  const [fa, fb] = [fitting(a), fitting(b)];
  if (fa !== fb) return fa ? -1 : 1;
  const [x, y] = [value(sortBy, a), value(sortBy, b)];
  const order = typeof x === 'number' && typeof y === 'number' ? x - y : String(x).localeCompare(String(y));
  return (rising ? order : -order) || a - b;
}

function drawTable() {
  $('table').tHead.replaceChildren(element('tr', {}, ...tableColumns.map((name) => {
    const button = element('button', {type: 'button'}, columns[name].words);
    button.addEventListener('click', () => { rising = sortBy === name ? !rising : true; sortBy = name; drawTable(); });
    return element('th', {scope: 'col', 'aria-sort': sortBy !== name ? 'none' : rising ? 'ascending' : 'descending', 'data-column': name}, button);
  })));
  const sorted = [...shown].sort(compare);
  $('table').tBodies[0].replaceChildren(...sorted.slice(0, rows).map((point) => {
    const fits = fitting(point), own = fits ? tableColumns : keys;
    const row = element('tr', {tabindex: 0, 'data-point': point}, ...own.map((name) => element('td', {}, figure(name, value(name, point)))));
    if (!fits) row.append(element('td', {class: 'word soft', colspan: tableColumns.length - keys.length}, value('reason', point) || 'does not fit'));
    if (point === chosen) row.className = 'best';
    row.addEventListener('click', () => choose(point));
    row.addEventListener('keydown', (e) => { if (e.key === 'Enter') choose(point); });
    return row;
  }));
  $('more').hidden = sorted.length <= rows;
  $('more').textContent = `Show all ${sorted.length}`;
}
$('more').addEventListener('click', () => { rows = Infinity; drawTable(); });
redraws.push(drawTable);
