// Searching spans by what they are called or their micro-batch, or several with commas; matches follow each other in time.

const matches = (i) => wanted.kinds[line.kind[i]] === 1 || wanted.microBatches.has(line.microBatch[i]);
let found = [];  // spans in the order of their start
function search() {
  const text = $('search').value.trim().toLowerCase();
  wanted = null;
  found = [];
  $('found').textContent = '';
  if (text && line) {
    wanted = {kinds: new Uint8Array(line.step.kinds.length), microBatches: new Set()};
    for (const part of text.split(',').map((p) => p.trim()).filter((p) => p)) {
      const number = /^(?:mb|micro-?batch|#)?\s*(\d+)$/.exec(part);
      if (number) wanted.microBatches.add(Number(number[1]));
      else line.step.kinds.forEach((k, i) => { if (`${k.kind} ${k.name} ${looks[k.look].name}`.toLowerCase().includes(part)) wanted.kinds[i] = 1; });
    }
    let time = 0;
    for (let i = 0; i < line.n; ++i) if (matches(i)) { found.push(i); time += line.end[i] - line.start[i]; }
    found.sort((a, b) => line.start[a] - line.start[b] || a - b);
    $('found').textContent = found.length ? `${found.length.toLocaleString('en')} spans, ${duration(time)} in all` : 'nothing found';
  }
  requestDraw();
}

// From what is selected, or from where the view starts.
function nextMatch(by) {
  if (found.length === 0) return;
  const at = found.indexOf(selected);
  if (at >= 0) return select(found[(at + by + found.length) % found.length], true);
  const start = selected >= 0 ? line.start[selected] : view.from;
  let next = found.findIndex((i) => line.start[i] >= start);
  if (next < 0) next = by > 0 ? 0 : found.length;
  select(found[by > 0 ? next : (next - 1 + found.length) % found.length], true);
}

// Something that this step has: its last micro-batch, and what takes most of its time.
function suggest() {
  const time = new Float64Array(line.step.kinds.length);
  let last = -1;
  for (let i = 0; i < line.n; ++i) {
    if (!looks[line.look[i]].bubble) time[line.kind[i]] += line.end[i] - line.start[i];
    last = Math.max(last, line.microBatch[i]);
  }
  const most = time.indexOf(Math.max(...time));
  const parts = most >= 0 ? [line.step.kinds[most].name] : [];
  if (last >= 0) parts.push('mb ' + last);
  $('search').placeholder = parts.join(', ');
}

$('search').addEventListener('input', search);
$('search').addEventListener('keydown', (e) => {
  if (e.key === 'Enter') { e.preventDefault(); nextMatch(e.shiftKey ? -1 : 1); }
});
