/** Colours and type that the pages share, light and dark. Nothing is fetched: system fonts, no images. */
export const pageStyle = `
:root {
  color-scheme: light dark;
  --ground: #f6f5f2; --card: #ffffff; --ink: #1d2026; --soft: #646b78; --line: #e3e1db;
  --accent: #3d5afe; --accent-soft: #e8ecff; --good: #1f8a52; --warn: #b26a00; --bad: #c2304a; --code: #f1efea;
  --sans: system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', sans-serif;
  --mono: ui-monospace, 'SF Mono', 'Cascadia Code', Menlo, Consolas, 'DejaVu Sans Mono', monospace;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #14161b; --card: #1c1f26; --ink: #e8e9ec; --soft: #9aa2b1; --line: #2c313b;
    --accent: #8fa2ff; --accent-soft: #262d4a; --good: #5ccb92; --warn: #e0a245; --bad: #f07a8d; --code: #171a20;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 15px/1.55 var(--sans); -webkit-font-smoothing: antialiased; }
a { color: var(--accent); text-decoration: none; }
a:hover { text-decoration: underline; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 4px; }
code, pre { font-family: var(--mono); font-size: 13px; }
button { font: inherit; color: inherit; cursor: pointer; }
[hidden] { display: none !important; }
.badge { display: inline-block; padding: 1px 9px; border-radius: 999px; background: var(--accent-soft); color: var(--accent); font-size: 12.5px; font-weight: 600; }
.copy { border: 1px solid var(--line); background: var(--card); border-radius: 7px; padding: 3px 11px; font-size: 12.5px; }
.copy:hover { border-color: var(--accent); color: var(--accent); }
`;
