// Choosing the run and the step that the timeline shows, and its legend.

function legend() {
  const used = [...new Set(line.step.kinds.map((k) => k.look))].filter((l) => looks[l].bubble || !causes()).sort((a, b) => a - b);
  $('legend').replaceChildren(...used.map((l) => {
    const mark = element('canvas', {width: 24, height: 14, 'aria-hidden': 'true'}), c = mark.getContext('2d');
    c.fillStyle = paint(l, dark());
    c.fillRect(0, 0, 24, 14);
    return element('li', {}, mark, looks[l].name);
  }));
}

const mostLanes = 16;  // of all replicas; otherwise all but the first are folded
async function show() {
  const run = data.runs[$('run').value], step = run && run.steps[$('step').value];
  if (!step) return;
  line = await decode(step);
  $('controls').disabled = false;
  const replicas = [...new Set(step.lanes.map((l) => l.replica))];
  folded = new Set(step.lanes.length > mostLanes ? replicas.slice(1) : []);
  layoutLanes();
  measure(false);
  hovered = selected = -1;
  tip.hidden = true;
  $('details').textContent = '';
  setView(0, step.end);
  const hidden = [];
  if (step.lanes_left_out) hidden.push(`${step.lanes_left_out} lanes of other replicas`);
  if (run.left_out) hidden.push(`${run.left_out} more steps`);
  $('hidden').textContent = hidden.length ? 'Not in this page: ' + hidden.join(', ') + '.' : '';
  canvas.setAttribute('aria-label', `Timeline of ${run.name}, ${run.strategy}, step ${step.step}: ` +
    `${step.lanes.length} lanes, ${step.spans} spans, ${duration(step.end)}`);
  legend();
  suggest();
  search();
}
function steps() {
  const run = data.runs[$('run').value];
  $('step').replaceChildren(...run.steps.map((s, i) => new Option(`step ${s.step}`, i)));
  $('step').parentElement.hidden = run.steps.length < 2;
  return show();
}
const complain = (e) => { $('details').textContent = 'The timeline cannot be shown: ' + e.message; };

onTheme.push(() => { if (line) legend(); requestDraw(); });
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
  get spans() { return line ? line.n : 0; }, get gutter() { return gutter; }, lanes: () => lanes, heads: () => heads,
  get selected() { return selected < 0 ? null : {start: line.start[selected], end: line.end[selected]}; }, get ruler() { return [...ruler]; }, paint, looks, setView, draw,
};
