/** The API reference for people: one page that draws `openapi.json`. The script is in `docs-script.ts`. */

import { logo, pageStyle } from '../../lib/page-style.ts';
import { makePage } from '../plugins/security-headers.ts';
import { docsScript } from './docs-script.ts';

const style = `${pageStyle}
html { scroll-padding-top: 18px; }
.shell { display: grid; grid-template-columns: 292px minmax(0, 1fr); min-height: 100vh; }
nav { position: sticky; top: 0; height: 100vh; overflow-y: auto; padding: 22px 16px 40px; border-right: 1px solid var(--line); background: var(--surface); }
nav input { width: 100%; margin: 14px 0 6px; padding: 7px 11px; font: inherit; font-size: 14px; color: var(--ink); background: var(--ground); border: 1px solid var(--line); border-radius: 8px; }
nav h2 { margin: 18px 0 5px; font-size: 11.5px; letter-spacing: 0.06em; text-transform: uppercase; color: var(--soft); }
nav a.op { display: flex; gap: 8px; align-items: baseline; padding: 3px 6px; border-radius: 6px; color: var(--ink); font-size: 13.5px; line-height: 1.4; }
nav a.op:hover { background: var(--accent-soft); text-decoration: none; }
nav a.op .verb { width: 46px; flex: none; }
main { padding: 34px 40px 90px; max-width: 1000px; width: 100%; }
h1 { margin: 0 0 6px; font-size: 28px; letter-spacing: -0.02em; }
.lead { color: var(--soft); max-width: 72ch; margin: 0 0 10px; }
h2.tag { margin: 46px 0 2px; font-size: 20px; letter-spacing: -0.01em; }
.tagline { margin: 0 0 12px; color: var(--soft); }
.verb { font: 700 11px/1.6 var(--mono); letter-spacing: 0.02em; }
.get { color: var(--good); } .post { color: var(--accent); } .patch, .put { color: var(--warn); } .delete { color: var(--bad); }
article { background: var(--surface); border: 1px solid var(--line); border-radius: 12px; margin: 12px 0; }
article > header { display: flex; flex-wrap: wrap; gap: 4px 12px; align-items: baseline; padding: 13px 18px; cursor: pointer; }
article > header .verb { font-size: 12.5px; min-width: 52px; }
article > header code { font-size: 13.5px; overflow-wrap: anywhere; }
article > header .sum { color: var(--soft); margin-left: auto; font-size: 14px; }
.detail { border-top: 1px solid var(--line); padding: 14px 18px 18px; }
.detail > p { margin: 0 0 10px; max-width: 76ch; }
h3 { margin: 18px 0 6px; font-size: 12px; text-transform: uppercase; letter-spacing: 0.05em; color: var(--soft); }
.field { display: grid; grid-template-columns: minmax(190px, 34%) 1fr; gap: 14px; padding: 5px 0; border-top: 1px solid var(--line); font-size: 14px; }
.field:first-child { border-top: 0; }
.field code { overflow-wrap: anywhere; }
.field .kind { color: var(--soft); font-size: 12.5px; display: block; }
.field .required, .field .optional { color: var(--bad); font-size: 12px; margin-left: 6px; }
.field .optional { color: var(--soft); }
.nest { margin-left: 14px; padding-left: 12px; border-left: 2px solid var(--line); }
details.more > summary { cursor: pointer; color: var(--accent); font-size: 13px; padding: 3px 0; }
.status { display: inline-block; margin: 8px 0 2px; font: 600 13px var(--mono); }
.bar { display: flex; justify-content: space-between; align-items: baseline; }
pre { margin: 0; padding: 12px 14px; background: var(--sunken); border: 1px solid var(--line); border-radius: 9px; overflow-x: auto; }
@media (max-width: 860px) { .shell { grid-template-columns: 1fr; } nav { position: static; height: auto; max-height: 45vh; border-right: 0; border-bottom: 1px solid var(--line); } main { padding: 24px 18px 60px; } .field { grid-template-columns: 1fr; gap: 2px; } article > header .sum { margin-left: 0; width: 100%; } }
`;

const body = `<div class="shell">
<nav aria-label="Operations"><a class="brand" href="/">${logo} Catnap</a> <span class="badge" id="version"></span>
<input id="filter" type="search" placeholder="Filter" aria-label="Filter operations"><div id="list"></div></nav>
<main id="content"><p class="lead">Loading…</p></main>
</div>`;

export const docsPage = makePage({ title: 'Catnap API', style, body, script: docsScript });
