/** The page at `/`: is it running, what is there, how to begin. It reads `/status.json` and nothing else. */

import { pageStyle } from '../../lib/page-style.ts';
import { makePage } from '../plugins/security-headers.ts';

const style = `${pageStyle}
main { max-width: 860px; margin: 0 auto; padding: 44px 22px 60px; }
header { display: flex; align-items: center; gap: 16px; margin-bottom: 30px; }
header svg { width: 62px; height: 62px; flex: none; }
h1 { margin: 0; font-size: 27px; line-height: 1.15; letter-spacing: -0.02em; }
header p { margin: 3px 0 0; color: var(--soft); }
.state { margin-left: auto; display: flex; align-items: center; gap: 8px; color: var(--soft); font-size: 13.5px; white-space: nowrap; }
.dot { width: 9px; height: 9px; border-radius: 50%; background: var(--soft); }
.dot.good { background: var(--good); box-shadow: 0 0 0 4px color-mix(in srgb, var(--good) 18%, transparent); }
.dot.bad { background: var(--bad); box-shadow: 0 0 0 4px color-mix(in srgb, var(--bad) 18%, transparent); }
.numbers { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 12px; margin-bottom: 14px; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 12px; padding: 16px 18px; }
.numbers .card b { display: block; font-size: 30px; line-height: 1.2; font-weight: 650; letter-spacing: -0.02em; font-variant-numeric: tabular-nums; }
.numbers .card span { color: var(--soft); font-size: 13.5px; }
.numbers .awake b { color: var(--good); }
.numbers .napping b { color: var(--accent); }
section.card { margin-bottom: 14px; padding: 18px 20px; }
h2 { margin: 0 0 12px; font-size: 15.5px; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 7px 22px; margin: 0; }
dt { color: var(--soft); }
dd { margin: 0; overflow-wrap: anywhere; }
.bar { display: flex; justify-content: space-between; align-items: baseline; gap: 12px; }
pre { margin: 0; padding: 14px 16px; background: var(--code); border: 1px solid var(--line); border-radius: 9px; overflow-x: auto; line-height: 1.6; }
.hint { margin: 11px 0 0; color: var(--soft); font-size: 13.5px; }
footer { display: flex; flex-wrap: wrap; gap: 8px 20px; margin-top: 24px; font-size: 14px; }
@media (max-width: 520px) { header { flex-wrap: wrap; } .state { margin-left: 0; } dl { grid-template-columns: 1fr; gap: 2px; } dd { margin-bottom: 8px; } }
`;

const body = `<main>
<header>
  <svg viewBox="0 0 64 64" fill="none" stroke="currentColor" stroke-width="2.6" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">
    <path d="M8 47c0-14 11-23 25-23 13 0 23 8 23 19 0 7-5 10-12 10H17c-6 0-9-2-9-6z"/>
    <path d="M12 34l-1-11 9 6M29 24.500l7-7 2 9"/>
    <path d="M17 38.500c1.500 1.500 3.500 1.500 5 0M28 38.500c1.500 1.500 3.500 1.500 5 0M25 43.500v.01"/>
    <path d="M56 44c3 6-1 11-9 11H30"/>
    <path d="M45 13h6l-6 7h6M54 5h4l-4 5h4" stroke-width="2.200" stroke="var(--accent)"/>
  </svg>
  <div><h1>Catnap <span class="badge" id="version"></span></h1><p>Postgres that naps when nobody uses it.</p></div>
  <div class="state" role="status"><span class="dot" id="dot"></span><span id="state">connecting</span></div>
</header>
<div id="details" hidden>
<div class="numbers">
  <div class="card"><b id="projects">0</b><span>projects</span></div>
  <div class="card awake"><b id="active">0</b><span>computes awake</span></div>
  <div class="card napping"><b id="idle">0</b><span>computes napping</span></div>
  <div class="card"><b id="init">0</b><span>computes being made</span></div>
</div>
<section class="card">
  <h2>This installation</h2>
  <dl>
    <dt>API</dt><dd><code id="api"></code></dd>
    <dt>Database port</dt><dd><code id="port"></code></dd>
    <dt>Driver</dt><dd id="driver"></dd>
    <dt>Region</dt><dd id="region"></dd>
    <dt>Postgres</dt><dd id="postgres"></dd>
  </dl>
</section>
<section class="card">
  <div class="bar"><h2>Create a project</h2><button class="copy" id="copy" type="button">Copy</button></div>
  <pre><code id="curl"></code></pre>
  <p class="hint">The reply has a connection string that works in any Postgres client. The key was printed at the first start and is in the file <code>api-key</code> of the data home.</p>
</section>
</div>
<footer><a href="/api/v2/docs">API reference</a><a href="/api/v2/openapi.json">OpenAPI document</a></footer>
</main>`;

const script = String.raw`
const byId = (id) => document.getElementById(id);
const show = (id, value) => { const text = String(value); const at = byId(id); if (at.textContent !== text) at.textContent = text; };
function curlFor(api) {
  return 'curl -X POST ' + api + '/projects \\\n'
    + '  -H "authorization: Bearer $CATNAP_API_KEY" \\\n'
    + '  -H "content-type: application/json" \\\n'
    + "  -d '{\"project\": {\"name\": \"hello\"}}'";
}
function render(status) {
  show('version', status.version);
  byId('details').hidden = !status.counts;
  if (!status.counts) return;
  show('projects', status.counts.projects);
  show('active', status.counts.endpoints.active);
  show('idle', status.counts.endpoints.idle);
  show('init', status.counts.endpoints.init);
  show('api', status.api_url);
  show('port', status.database_port);
  show('driver', status.driver);
  show('region', status.region_id);
  show('postgres', status.pg_versions.join(', '));
  show('curl', curlFor(status.api_url));
}
async function refresh() {
  try {
    const reply = await fetch('/status.json', { cache: 'no-store' });
    if (!reply.ok) throw new Error(String(reply.status));
    render(await reply.json());
    byId('dot').className = 'dot good';
    show('state', 'running');
  } catch {
    byId('dot').className = 'dot bad';
    show('state', 'not reachable');
  }
}
byId('copy').addEventListener('click', async () => {
  await navigator.clipboard.writeText(byId('curl').textContent);
  show('copy', 'Copied');
  setTimeout(() => show('copy', 'Copy'), 1500);
});
setInterval(() => { if (!document.hidden) refresh(); }, 3000);
document.addEventListener('visibilitychange', () => { if (!document.hidden) refresh(); });
refresh();
`;

export const statusPage = makePage({ title: 'Catnap', style, body, script });
