/**
 * The status page and its numbers. It asks for no key, so it says little: to people on the same machine, and to those
 * who have a key, counts and addresses; to everybody else the name and the version.
 */
import type { FastifyRequest } from 'fastify';
import { readScope } from '../../core/context.ts';
import { getSystemStatus } from '../../core/status.ts';
import { type Config, isLoopback } from '../../lib/config.ts';
import type { App } from '../kit/app-type.ts';
import type { ApiParts } from '../kit/parts.ts';
import { statusPage } from '../pages/status-page.ts';
import { type Access, authenticateRequest } from '../plugins/auth.ts';
import { sendPage } from '../plugins/security-headers.ts';
import { briefStatusView, statusView } from '../views/status.ts';
import { isLocalPeer } from './health.ts';

const open = { config: { isPublic: true }, schema: { hide: true } };

export function statusRoutes(app: App, parts: ApiParts, access: Access): void {
  app.get('/status', open, async (_request, reply) => sendPage(reply, statusPage));

  app.get('/status.json', open, async (request) => {
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
