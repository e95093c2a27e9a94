/**
 * What runs here, as JSON. It needs no key, so it reports little: counts and addresses to requests with a key and,
 * where Catnap listens on loopback only, to local requests; the name and the version to all others.
 */
import { readScope } from '../../core/context.ts';
import { getSystemStatus } from '../../core/status.ts';
import { isLoopback } from '../../lib/ip.ts';
import type { App } from '../kit/app-type.ts';
import type { ApiParts } from '../kit/parts.ts';
import { type Access, authenticateRequest } from '../plugins/auth.ts';
import { Installation } from '../schemas/unversioned.ts';
import { briefStatusView, statusView } from '../views/status.ts';
import { isLocalVisitor } from './health.ts';

const open = { config: { isPublic: true }, schema: { hide: true } };
const statusSchema = { hide: true, response: { 200: Installation } };

export function statusRoutes(app: App, parts: ApiParts, access: Access): void {
  // A page of its own was here once, and users have bookmarks.
  app.get('/status', open, async (_request, reply) => reply.redirect('/about'));

  app.get('/status.json', { config: open.config, schema: statusSchema }, async (request) => {
    const isKnown =
      (isLoopback(parts.config.bind) && isLocalVisitor(request, parts.config)) ||
      (await authenticateRequest(request, access)) !== undefined;
    if (!isKnown) return briefStatusView(parts.version);
    return statusView(parts.config, parts.version, await getSystemStatus(readScope(parts.core)));
  });
}
