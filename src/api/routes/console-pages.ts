/** Serves the console: one page under every path that it knows, and its scripts and styles. */
import { randomBytes } from 'node:crypto';
import type { FastifyReply } from 'fastify';
import { Type } from 'typebox';
import { notFound } from '../../lib/errors.ts';
import type { App } from '../kit/app-type.ts';
import type { ConsoleFiles } from '../kit/console-files.ts';

const open = { config: { isPublic: true }, schema: { hide: true } };

/** The console's own router handles what follows. Another path is a 404, with this page for people. */
const pagePaths = ['/', '/keys', '/organization', '/deleted', '/about', '/psql', '/projects', '/projects/*'];
const AssetParams = Type.Object({ name: Type.String({ maxLength: 200 }) });

export function consolePages(app: App, files: ConsoleFiles): void {
  for (const path of pagePaths) app.get(path, open, async (_request, reply) => sendConsole(reply, files));

  app.get('/assets/:name', { config: open.config, schema: { hide: true, params: AssetParams } }, (request, reply) => {
    const file = files.assets.get(request.params.name);
    if (file === undefined) throw notFound('file');
    reply
      .type(file.type)
      .header('cache-control', 'public, max-age=31536000, immutable')
      .header('vary', 'accept-encoding');
    const taken = String(request.headers['accept-encoding'] ?? '').split(/[\s,;]+/);
    const [encoding, body] = file.encoded.find(([name]) => taken.includes(name)) ?? [];
    if (encoding === undefined) return reply.send(file.body);
    return reply.header('content-encoding', encoding).send(body);
  });
}

/** The editor adds its own style sheet, which the nonce of the page lets it do; no other sheet may be inline. */
export function sendConsole(reply: FastifyReply, { page }: ConsoleFiles): FastifyReply {
  const nonce = randomBytes(16).toString('base64');
  const policy = [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    // Browsers write such attributes themselves when a user types over coloured text.
    "style-src-attr 'unsafe-inline'",
    "connect-src 'self'",
    "img-src 'self' data:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
  return reply
    .type('text/html; charset=utf-8')
    .header('content-security-policy', policy)
    .header('cross-origin-opener-policy', 'same-origin')
    .send(page.replaceAll('%CSP_NONCE%', nonce));
}
