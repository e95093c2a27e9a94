/** Every route under the version prefix that needs a key. */
import type { App } from '../kit/app-type.ts';
import type { ApiParts } from '../kit/parts.ts';
import { absentRoutes } from './absent.ts';
import { accountRoutes } from './account.ts';
import { apiKeyRoutes } from './api-keys.ts';

import { authIntegrationRoutes } from './auth-integrations.ts';
import { authSettingsRoutes } from './auth-settings.ts';
import { authUserRoutes } from './auth-users.ts';
import { backupRoutes } from './backup.ts';

import { branchContentRoutes } from './branch-content.ts';

import { branchRoutes } from './branches.ts';
import { consumptionRoutes } from './consumption.ts';
import { databaseRoutes } from './databases.ts';
import { endpointLogsRoutes } from './endpoint-logs.ts';
import { endpointMetricsRoutes } from './endpoint-metrics.ts';
import { endpointRoutes } from './endpoints.ts';
import { extensionRoutes } from './extensions.ts';
import { keySetRoutes } from './key-sets.ts';
import { memberRoutes } from './members.ts';
import { notOfferedRoutes } from './not-offered.ts';
import { operationRoutes } from './operations.ts';
import { outboxRoutes } from './outbox.ts';
import { preloadLibraryRoutes } from './preload-libraries.ts';
import { projectRoutes } from './projects.ts';
import { recoveryRoutes } from './recovery.ts';
import { roleRoutes } from './roles.ts';
import { savedQueryRoutes } from './saved-queries.ts';
import { sessionRoutes } from './sessions.ts';
import { snapshotRoutes } from './snapshots.ts';
import { webhookRoutes } from './webhooks.ts';

export function apiRoutes(app: App, parts: ApiParts): void {
  projectRoutes(app, parts);
  recoveryRoutes(app, parts);
  keySetRoutes(app, parts);
  branchRoutes(app, parts);
  branchContentRoutes(app, parts);
  snapshotRoutes(app, parts);
  savedQueryRoutes(app, parts);
  webhookRoutes(app, parts);
  endpointRoutes(app, parts);
  endpointLogsRoutes(app, parts);
  sessionRoutes(app, parts);
  endpointMetricsRoutes(app, parts);
  consumptionRoutes(app, parts);
  databaseRoutes(app, parts);
  roleRoutes(app, parts);
  operationRoutes(app, parts);
  apiKeyRoutes(app, parts);
  authIntegrationRoutes(app, parts);
  authUserRoutes(app, parts);
  authSettingsRoutes(app, parts);
  accountRoutes(app, parts);
  outboxRoutes(app, parts);
  backupRoutes(app, parts);
  memberRoutes(app, parts);
  preloadLibraryRoutes(app, parts);
  extensionRoutes(app, parts);
  absentRoutes(app, parts);
  notOfferedRoutes(app, parts);
}
