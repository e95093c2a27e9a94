/** The provider's own pages: signing in, taking over a project, the dashboard. Failures are pages too. */

import type { Limits } from '../core/limits.ts';
import type { AuthProviderParts } from '../core/parts.ts';
import type { AuthProviderApp } from '../http/app-type.ts';
import { accountRoutes } from './account-routes.ts';
import { dashboardRoutes } from './dashboard-routes.ts';
import { sendFailure } from './failures.ts';
import { resetRoutes } from './reset-routes.ts';
import { transferPageRoutes } from './transfer-routes.ts';

export function pageRoutes(app: AuthProviderApp, parts: AuthProviderParts, limits: Limits): void {
  app.setErrorHandler(sendFailure);
  accountRoutes(app, parts, limits);
  resetRoutes(app, parts, limits);
  transferPageRoutes(app, parts);
  dashboardRoutes(app, parts);
}
