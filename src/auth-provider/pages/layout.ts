/** The frame of the provider's pages: their style, and what the browser allows them to do. */
import { createHash } from 'node:crypto';
import type { FastifyReply } from 'fastify';
import { iconLink, logo, pageStyle } from '../../lib/page-style.ts';
import { Html, html } from './html.ts';

const style = `${pageStyle}
main { max-width: 460px; margin: 0 auto; padding: 28px 18px 60px; }
main.wide { max-width: 920px; }
.top { display: flex; align-items: center; gap: 12px; max-width: 460px; margin: 0 auto; padding: 18px; }
.top.wide { max-width: 920px; }
.top .who { margin-left: auto; display: flex; align-items: center; gap: 12px; color: var(--soft); font-size: 13.5px; min-width: 0; }
.top .who span { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
h1 { margin: 0 0 6px; font-size: 21px; line-height: 1.25; font-weight: 650; letter-spacing: -0.015em; overflow-wrap: anywhere; }
h2 { margin: 0 0 4px; font-size: 15.5px; }
h2 + .note { margin-top: 10px; }
h2 + form, h2 + details { margin-top: 14px; }
.rows + form { margin-top: 12px; }
.lead { margin: 0 0 20px; color: var(--soft); }
.card { background: var(--surface); border: 1px solid var(--line); border-radius: 12px; padding: 20px; margin-bottom: 14px; }
.card > .lead { margin-bottom: 14px; font-size: 13.5px; }
label { display: block; font-size: 13.5px; font-weight: 600; margin-bottom: 12px; }
input[type=text], input[type=email], input[type=password], input[type=url], input[type=search] {
  display: block; width: 100%; margin-top: 5px; padding: 9px 11px; font: inherit; font-weight: 400; color: inherit;
  background: var(--ground); border: 1px solid var(--line); border-radius: 8px; }
.button { display: inline-block; padding: 9px 16px; border: 1px solid var(--accent-ground); border-radius: var(--radius); background: var(--accent-ground); color: var(--on-accent); font-weight: 600; text-align: center; }
.button:hover { filter: brightness(1.08); text-decoration: none; }
.button.full { display: block; width: 100%; }
.button.quiet { background: transparent; color: var(--ink); border-color: var(--line); }
.button.quiet:hover { border-color: var(--accent); color: var(--accent); }
.button.small { padding: 4px 11px; font-size: 13px; }
.button.danger { background: transparent; color: var(--bad); border-color: var(--line); }
.button.danger:hover { border-color: var(--bad); }
.link { border: 0; background: none; padding: 0; color: var(--accent); }
.link:hover { text-decoration: underline; }
.note { padding: 11px 14px; border-radius: 9px; margin: 0 0 14px; border: 1px solid var(--line); background: var(--sunken); overflow-wrap: anywhere; }
.note.bad { border-color: var(--bad); border-left-width: 4px; }
.note.good { border-color: var(--good); border-left-width: 4px; }
.account { display: flex; align-items: center; gap: 12px; padding: 12px 14px; border: 1px solid var(--accent); border-radius: 10px; margin-bottom: 14px; }
.account .face { width: 36px; height: 36px; flex: none; border-radius: 50%; background: var(--accent-soft); color: var(--accent); display: grid; place-items: center; font-weight: 700; }
.account div { min-width: 0; }
.account b, .account small { display: block; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.account small { color: var(--soft); }
.or { display: flex; align-items: center; gap: 12px; margin: 18px 0; color: var(--soft); font-size: 13px; }
.or::before, .or::after { content: ''; flex: 1; border-top: 1px solid var(--line); }
.switch { text-align: center; margin: 12px 0 0; color: var(--soft); font-size: 14px; }
details summary { cursor: pointer; color: var(--accent); font-weight: 600; font-size: 14px; }
details[open] summary { margin-bottom: 14px; }
.rows { list-style: none; margin: 0; padding: 0; }
.rows li { display: flex; align-items: center; gap: 12px; padding: 10px 0; border-top: 1px solid var(--line); min-width: 0; }
.rows li:first-child { border-top: 0; }
.rows .grow { flex: 1; min-width: 0; }
.rows b, .rows code, .rows small { display: block; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.rows b { white-space: normal; overflow-wrap: anywhere; }
.rows small { color: var(--soft); }
.rows .grow small { white-space: normal; overflow-wrap: anywhere; }
label .hint { float: right; font-weight: 400; color: var(--soft); }
.rows .gone { opacity: 0.6; }
.bar { display: flex; align-items: flex-end; gap: 10px; margin-top: 12px; }
.bar label { flex: 1; margin: 0; }
.secret { display: flex; align-items: center; gap: 10px; margin-bottom: 12px; }
p.lead:has(+ .secret) { margin-bottom: 6px; }
.secret code { flex: 1; min-width: 0; padding: 8px 11px; background: var(--sunken); border: 1px solid var(--line); border-radius: 8px; overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 6px 20px; margin: 0; }
dt { color: var(--soft); }
dd { margin: 0; overflow-wrap: anywhere; }
.empty { margin: 0; color: var(--soft); }
@media (max-width: 520px) {
  dl { grid-template-columns: 1fr; gap: 1px; } dd { margin-bottom: 8px; }
  .bar { flex-direction: column; align-items: stretch; } .top .who span { display: none; }
}
`;

/** All pages work without it; it adds copying, and a confirmation before what cannot be undone. */
const script = `
document.addEventListener('submit', (event) => {
  const question = event.target.dataset.question;
  if (question && !window.confirm(question)) event.preventDefault();
});
document.addEventListener('click', async (event) => {
  const button = event.target.closest('button[data-copy]');
  if (!button) return;
  await navigator.clipboard.writeText(button.dataset.copy);
  button.textContent = 'Copied';
});
`;

const policy = [
  "default-src 'none'",
  `script-src '${sha256(script)}'`,
  `style-src '${sha256(style)}'`,
  'img-src data:',
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ');

export interface PageOptions {
  readonly title: string;
  readonly body: Html;
  readonly status?: number;
  readonly isWide?: boolean;
  /** The signed-in user, with the form for signing out. */
  readonly who?: Html | undefined;
}

export function sendHtml(reply: FastifyReply, page: PageOptions): FastifyReply {
  const { text } = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>${page.title} · Catnap Auth</title>
${new Html(iconLink)}
<style>${new Html(style)}</style>
</head>
<body>
<header class="top${page.isWide ? ' wide' : ''}"><a class="brand" href="/stack/dashboard">${new Html(logo)} Catnap Auth</a>${page.who}</header>
<main${page.isWide ? html` class="wide"` : null}>
${page.body}
</main>
<script>${new Html(script)}</script>
</body>
</html>
`;
  return reply
    .status(page.status ?? 200)
    .type('text/html; charset=utf-8')
    .headers({
      'content-security-policy': policy,
      // Codes are in URLs; but without an origin, our own forms could not be distinguished from foreign ones.
      'referrer-policy': 'same-origin',
      'cross-origin-opener-policy': 'same-origin',
    })
    .serializer(String)
    .send(text);
}

function sha256(text: string): string {
  return `sha256-${createHash('sha256').update(text).digest('base64')}`;
}
