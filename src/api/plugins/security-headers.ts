/**
 * Headers that keep browsers from doing more with a reply than we mean: no sniffing, no framing, no caching of API
 * replies. CORS is not opened: a page of another origin cannot read anything here.
 */
import { createHash } from 'node:crypto';
import type { FastifyReply } from 'fastify';
import { iconLink } from '../../lib/page-style.ts';
import type { App } from '../kit/app-type.ts';

const apiPolicy = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

export function useSecurityHeaders(app: App, options: { isHttps: boolean }): void {
  const headers = {
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
    'referrer-policy': 'no-referrer',
    'cross-origin-resource-policy': 'same-origin',
    'cache-control': 'no-store',
    'content-security-policy': apiPolicy,
    ...(options.isHttps && { 'strict-transport-security': 'max-age=31536000' }),
  };
  app.addHook('onRequest', (_request, reply, done) => {
    reply.headers(headers);
    done();
  });
}

export interface Page {
  readonly html: string;
  /** Allows this page's own inline script and style, by hash, and nothing else. */
  readonly policy: string;
}

export function makePage(parts: { title: string; style: string; body: string; script: string }): Page {
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${parts.title}</title>
${iconLink}
<style>${parts.style}</style>
</head>
<body>
${parts.body}
<script>${parts.script}</script>
</body>
</html>
`;
  const policy = [
    "default-src 'none'",
    `script-src '${sha256(parts.script)}'`,
    `style-src '${sha256(parts.style)}'`,
    "connect-src 'self'",
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
  return { html, policy };
}

export function sendPage(reply: FastifyReply, page: Page): FastifyReply {
  return reply.type('text/html; charset=utf-8').header('content-security-policy', page.policy).send(page.html);
}

function sha256(text: string): string {
  return `sha256-${createHash('sha256').update(text).digest('base64')}`;
}
