// The figures of the chosen run: from the table alone, as a sweep keeps no timelines.
function drawChosen() {
  $('chosen').hidden = chosen < 0;
  if (chosen < 0) return;
  const close = element('button', {type: 'button'}, 'Close');
  close.addEventListener('click', () => choose(-1));
  const head = element('h2', {}, describe(chosen), ' ', close);
  if (!fitting(chosen)) return $('chosen').replaceChildren(head, element('p', {}, value('reason', chosen) || 'does not fit'));
  const idle = data.causes.map((c) => ({...c, share: value(c.column, chosen)})).filter((c) => c.share > 0);
  const part = (words, colour, share) => element('span', {title: `${words} ${figure('share', share)}`, style: `width:${100 * share}%;background:${colour}`});
  const bar = element('div', {class: 'bar', 'aria-hidden': 'true'}, part('computing', '#8aa0b4', 1 - value('bubble_share', chosen)), ...idle.map((c) => part(c.words, c.colour, c.share)));
  const mark = (colour) => element('i', {class: 'mark', style: `background:${colour}`});
  const shares = element('ul', {class: 'shares'}, element('li', {}, mark('#8aa0b4'), `computing ${figure('share', 1 - value('bubble_share', chosen))}`),
    ...idle.sort((a, b) => b.share - a.share).map((c) => element('li', {}, mark(c.colour), `${c.words} ${figure('share', c.share)}`)));
  const list = element('dl', {}, ...data.figures.filter((n) => value(n, chosen) !== null).flatMap((n) => [element('dt', {}, columns[n].words.replace(/ \((GiB|share.*)\)/, '')), element('dd', {}, figure(n, value(n, chosen)))]));
  const overrides = keys.map((k) => `${k === 'strategy' ? 'strategy.name' : k}=${value(k, chosen)}`).join(' ');
  $('chosen').replaceChildren(head, bar, shares, list, element('p', {class: 'soft'}, 'This run alone, with its timeline: '), element('pre', {}, `mllmsim run ${value('run', chosen)} ${overrides}`));
}
redraws.push(drawChosen);
addEventListener('keydown', (e) => { if (e.key === 'Escape') choose(-1); });
addEventListener('resize', drawFrontier);

showTheme();
filter();
