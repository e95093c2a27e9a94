/**
 * The process that uploads: it compresses and encrypts without delaying requests, wakes or operations, and yields the
 * processor to all of them. It runs only where a store is configured.
 */
import { getPriority, setPriority } from 'node:os';
import { parseBackupKey } from '../backup/seal/backup-key.ts';
import { openStore } from '../backup/store/open-store.ts';
import { Uploader } from '../backup/upload/uploader.ts';
import { readBackupFacts, recordBackup } from '../core/backup.ts';
import { readScope } from '../core/context.ts';
import type { ProcessParts, RunningProcess } from './parts.ts';

/** A third of a share. At 10, a machine with six busy clients left it one percent, and a first image took minutes. */
const niceness = 5;

export async function startBackup({ core, log, init }: ProcessParts): Promise<RunningProcess> {
  const { backup: settings } = core.config;
  if (settings === undefined || init.backup === null) throw new Error('there is no store to upload to');
  // A Catnap that was itself started with `nice` may not take any of it back.
  setPriority(Math.max(niceness, getPriority()));
  const key = parseBackupKey(init.backup.key);
  const scope = readScope(core);
  const uploader = new Uploader({
    store: openStore(settings),
    key,
    root: init.backup.historyDirectory,
    claimant: { installationId: init.backup.installationId, keyId: key.id },
    version: init.version,
    homeFiles: init.backup.homeFiles.map(({ name, content }) => ({ name, content: Buffer.from(content, 'base64') })),
    delaySeconds: settings.delaySeconds,
    log,
    readFacts: () => readBackupFacts(scope),
    report: (report) => recordBackup(scope, settings.url, report),
  });
  uploader.start();
  return {
    stop: async () => {
      await uploader.stop();
      await core.database.close();
    },
  };
}
