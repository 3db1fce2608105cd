// What all pages share: their data, light and dark, and words for quantities. CMake puts it before
// the scripts of a page, all in one function; no libraries, no network.
const $ = (id) => document.getElementById(id);
const data = JSON.parse($('data').textContent);
const tip = $('tip');

// An element with texts and elements in it; texts stay texts.
function element(name, attributes, ...children) {
  const out = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) out.setAttribute(key, value);
  out.append(...children);
  return out;
}

function showTip(lines, pageX, pageY) {
  tip.replaceChildren(...lines.map((text, i) => element('div', i ? {} : {class: 'what'}, text)));
  tip.hidden = false;
  const left = Math.min(pageX + 14, document.documentElement.clientWidth - tip.offsetWidth - 8);
  tip.style.left = Math.max(4, left) + 'px';
  tip.style.top = pageY + 18 + 'px';
}
// It would stand beside something else.
addEventListener('scroll', () => { tip.hidden = true; }, {passive: true});
addEventListener('keydown', (e) => { if (e.key === 'Escape') tip.hidden = true; });

// --- light and dark ---

const dark = () => {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
};
const remember = (theme) => {
  try { localStorage.setItem('mllmsim-theme', theme); } catch (e) { /* a page without storage */ }
};
try {
  const before = localStorage.getItem('mllmsim-theme');
  if (before) document.documentElement.dataset.theme = before;
} catch (e) { /* a page without storage */ }
const onTheme = [];  // what is drawn again
const showTheme = () => {
  $('theme').textContent = dark() ? 'Light' : 'Dark';
  $('theme').setAttribute('aria-label', dark() ? 'Switch to light colours' : 'Switch to dark colours');
  for (const redraw of onTheme) redraw();
};
$('theme').addEventListener('click', () => {
  document.documentElement.dataset.theme = dark() ? 'light' : 'dark';
  remember(document.documentElement.dataset.theme);
  showTheme();
});
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', showTheme);

