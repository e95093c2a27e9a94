/** What is off the machine, for the operator. */
import { getBackupStatus } from '../../core/backup.ts';
import type { App } from '../kit/app-type.ts';
import type { ApiParts } from '../kit/parts.ts';
import { BackupReply } from '../schemas/backup.ts';
import { errorReply } from '../schemas/error.ts';
import { backupView } from '../views/backup.ts';
import { ask } from './command.ts';

export function backupRoutes(app: App, parts: ApiParts): void {
  const schema = {
    tags: ['Account'],
    operationId: 'getBackup',
    summary: 'Show what is off the machine',
    description: 'How far the store is behind, for each branch. For personal keys of the operator.',
    response: { 200: BackupReply, ...errorReply },
  };
  app.get('/backup', { schema }, (request) =>
    ask(parts, request, async (scope, caller) => backupView(await getBackupStatus(scope, caller), scope.clock.now())),
  );
}
