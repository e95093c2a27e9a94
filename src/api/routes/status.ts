/**
 * What runs here, as JSON. It needs no key, so it reports little: counts and addresses to requests with a key and,
 * where Catnap listens on loopback only, to local requests; the name and the version to all others.
 */
import type { FastifyRequest } from 'fastify';
import { readScope } from '../../core/context.ts';
import { getSystemStatus } from '../../core/status.ts';
import { type Config, isLoopback } from '../../lib/config.ts';
import type { App } from '../kit/app-type.ts';
import type { ApiParts } from '../kit/parts.ts';
import { type Access, authenticateRequest } from '../plugins/auth.ts';
import { Installation } from '../schemas/unversioned.ts';
import { briefStatusView, statusView } from '../views/status.ts';
import { isLocalPeer } from './health.ts';

const open = { config: { isPublic: true }, schema: { hide: true } };
const statusSchema = { hide: true, response: { 200: Installation } };

export function statusRoutes(app: App, parts: ApiParts, access: Access): void {
  // A page of its own was here once, and users have bookmarks.
  app.get('/status', open, async (_request, reply) => reply.redirect('/about'));

  app.get('/status.json', { config: open.config, schema: statusSchema }, async (request) => {
    const isKnown = isLocalVisitor(request, parts.config) || (await authenticateRequest(request, access)) !== undefined;
    if (!isKnown) return briefStatusView(parts.version);
    return statusView(parts.config, parts.version, await getSystemStatus(readScope(parts.core)));
  });
}

/**
 * The name in the Host header is checked too: a page of another site could point its own name at this machine and have
 * the visitor's browser read the reply.
 */
function isLocalVisitor(request: FastifyRequest, config: Config): boolean {
  const names = ['localhost', '127.0.0.1', '[::1]', new URL(config.publicUrl).hostname];
  return isLoopback(config.bind) && isLocalPeer(request) && names.includes(request.hostname);
}
