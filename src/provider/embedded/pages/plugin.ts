/** The provider's own pages: signing in, taking over a project, the dashboard. Failures are pages too. */
import type { StackApp } from '../app-type.ts';
import { statusOf } from '../http/errors.ts';
import type { Limits } from '../limits.ts';
import type { StackParts } from '../parts.ts';
import { accountRoutes } from './account-routes.ts';
import { dashboardRoutes } from './dashboard-routes.ts';
import { html } from './html.ts';
import { sendHtml } from './layout.ts';
import { resetRoutes } from './reset-routes.ts';
import { transferPageRoutes } from './transfer-routes.ts';

const titles: Readonly<Record<number, string>> = { 403: 'Not allowed', 404: 'Not found', 429: 'Too many attempts' };

export function pageRoutes(app: StackApp, parts: StackParts, limits: Limits): void {
  app.setErrorHandler((error, request, reply) => {
    const status = statusOf(error) ?? 500;
    if (status >= 500) request.log.error({ err: error }, 'a page of the auth provider failed');
    const isOurs = error instanceof Error && status < 500;
    const title = titles[status] ?? (status < 500 ? 'That did not work' : 'Something went wrong');
    const text = isOurs ? error.message : 'Please try again. The log has the cause under the request id.';
    return sendHtml(reply, {
      ...{ title, status },
      body: html`<h1>${title}</h1><p class="lead">${text}</p>
<section class="card"><a class="button quiet full" href="/stack/dashboard">Go to the dashboard</a></section>`,
    });
  });
  accountRoutes(app, parts, limits);
  resetRoutes(app, parts, limits);
  transferPageRoutes(app, parts);
  dashboardRoutes(app, parts);
}
