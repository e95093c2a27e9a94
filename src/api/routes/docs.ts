/** The API's own description, for programs and for people. */
import type { App } from '../kit/app-type.ts';
import { docsPage } from '../pages/docs-page.ts';
import { sendPage } from '../plugins/security-headers.ts';

const open = { config: { isPublic: true }, schema: { hide: true } };

export function docsRoutes(app: App): void {
  app.get('/openapi.json', open, async () => app.swagger());
  app.get('/docs', open, async (_request, reply) => sendPage(reply, docsPage));
}
