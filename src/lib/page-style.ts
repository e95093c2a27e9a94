/**
 * What all pages share that are not the console: its colours, type and logo. Nothing is fetched: system fonts, and the
 * logo as part of the page. `console/styles/base.css` and `console/ui/icons.tsx` have the same, which a test compares.
 */
export const pageStyle = `
:root {
  color-scheme: light dark;
  --ground: light-dark(#f7f6f3, #121419);
  --surface: light-dark(#ffffff, #1a1d24);
  --sunken: light-dark(#f2f1ed, #15181e);
  --ink: light-dark(#1c1f24, #e7e8eb);
  --soft: light-dark(#5a616c, #9fa6b2);
  --line: light-dark(#e3e1db, #2b303a);
  --accent: light-dark(#3a4fcf, #9aaaff);
  --accent-ground: light-dark(#3a4fcf, #4a5fe0);
  --accent-soft: light-dark(#e9ecfd, #232a45);
  --on-accent: #ffffff;
  --good: light-dark(#17703f, #5fcb93);
  --warn: light-dark(#855000, #e3ab56);
  --bad: light-dark(#b1243d, #f58a9a);
  --sans: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", sans-serif;
  --mono: ui-monospace, "SF Mono", "Cascadia Code", Menlo, Consolas, "DejaVu Sans Mono", monospace;
  --radius: 8px;
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 14px/1.5 var(--sans); -webkit-font-smoothing: antialiased; }
a { color: var(--accent); text-decoration: none; }
a:hover { text-decoration: underline; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 4px; }
code, pre { font-family: var(--mono); font-size: 12.5px; }
button { font: inherit; color: inherit; cursor: pointer; }
[hidden] { display: none !important; }
.brand { display: inline-flex; align-items: center; gap: 9px; vertical-align: middle; font-size: 15px; font-weight: 650; color: var(--ink); }
.brand:hover { text-decoration: none; }
.logo { width: 24px; height: 24px; flex: none; }
.logo-head { fill: var(--accent-ground); }
.logo-eyes { fill: none; stroke: var(--on-accent); stroke-width: 2; stroke-linecap: round; }
.badge { display: inline-block; vertical-align: middle; padding: 1px 9px; border-radius: 999px; background: var(--accent-soft); color: var(--accent); font-size: 12px; font-weight: 600; }
.copy { border: 1px solid var(--line); background: var(--surface); border-radius: var(--radius); padding: 3px 11px; font-size: 12.5px; }
.copy:hover { border-color: var(--accent); color: var(--accent); }
`;

const head = 'M6 6l6 4h8l6-4v12a10 9 0 0 1-20 0z';
const eyes = 'M10.500 17.500q1.700 1.600 3.500 0M18 17.500q1.700 1.600 3.500 0';

/** A cat's head with closed eyes. */
export const logo =
  '<svg class="logo" viewBox="0 0 32 32" aria-hidden="true">' +
  `<path class="logo-head" d="${head}"/><path class="logo-eyes" d="${eyes}"/></svg>`;

const icon =
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><path fill="#4257d6" d="${head}"/>` +
  `<path stroke="#fff" stroke-width="2" stroke-linecap="round" fill="none" d="${eyes}"/></svg>`;

/** For the tab of the browser. */
export const iconLink = `<link rel="icon" href="data:image/svg+xml,${encodeURIComponent(icon)}">`;
