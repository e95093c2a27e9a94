/** What `catnap restore` and `catnap backup verify` do on the machine, from the words of the command line. */
import { StoreError } from '../backup/store/object-store.ts';
import { adminSecretSealContext } from '../core/project.ts';
import { recordVerification } from '../db/backups.ts';
import { type Config, readRestoreSource } from '../lib/config.ts';
import { errorText } from '../lib/errors.ts';
import { isLsn, type Moment } from '../lib/moments.ts';
import { readBackupKey } from '../machine/key-files.ts';
import { restoreInstallation } from '../machine/restore/installation.ts';
import type { RestoreReport } from '../machine/restore/report.ts';
import { type Verification, verifyBackup } from '../machine/restore/verify.ts';
import { withSystemDatabase } from '../machine/system-database.ts';
import { type ProjectReport, type ProjectWish, restoreProject } from './restore-project.ts';

export interface RestoreRequest {
  readonly from: string;
  readonly keyLine: string;
  readonly at: string | undefined;
  readonly atOnce: number;
}

export function restoreFromBackup(
  config: Config,
  { from, keyLine, at, atOnce }: RestoreRequest,
  say: (line: string) => void,
): Promise<RestoreReport> {
  const store = readRestoreSource(from);
  const moment = at === undefined ? null : parseMoment(at);
  const options = { store, keyLine, moment, atOnce, sealContext: adminSecretSealContext, say };
  return restoreInstallation(config, options);
}

/** One project, into the Catnap that runs on this home. */
export function restoreProjectFromBackup(
  config: Config,
  { project, from, keyLine, at, atOnce }: RestoreRequest & { readonly project: ProjectWish },
  say: (line: string) => void,
): Promise<ProjectReport> {
  const moment = at === undefined ? null : parseMoment(at);
  const options = { store: readRestoreSource(from), keyLine, moment, atOnce, sealContext: adminSecretSealContext, say };
  return restoreProject(config, project, options);
}

/** The positions of different servers have nothing in common, so they are restored to a time. */
function parseMoment(text: string): Moment {
  if (isLsn(text)) throw new Error('--at: each branch has a log of its own, so all are restored to a time');
  const time = new Date(text);
  if (!/^\d{4}-\d\d-\d\dT.*(Z|[+-]\d\d:?\d\d)$/i.test(text) || Number.isNaN(time.getTime())) {
    throw new Error('--at must be a time with its zone, such as 2026-01-31T12:00:00Z');
  }
  if (time.getTime() > Date.now()) throw new Error('--at is in the future');
  return { kind: 'time', at: time.toISOString() };
}

/** Where Catnap runs, the result is kept in the system database, from which `catnap backup status` shows it. */
export async function verifyFromBackup(
  config: Config,
  sample: number | null,
  say: (line: string) => void,
): Promise<Verification> {
  const { backup: store, home } = config;
  if (store === undefined) throw new Error('CATNAP_BACKUP_URL is not set: there is no store to verify');
  const keyLine = await readBackupKey(home);
  if (keyLine === undefined) throw new Error(`there is no backup key in ${home}: start Catnap once`);
  const record = (isOk: boolean, text: string) =>
    withSystemDatabase(config, ({ sql }) => recordVerification(sql, store.url, isOk, text)).catch((error: unknown) =>
      say(`the result is not recorded, because Catnap does not run: ${errorText(error)}`),
    );
  const found = await verifyBackup(config, { store, keyLine, sample, say }).catch(async (error: unknown) => {
    // A store that is away says nothing about what is in it, and is an alert of its own.
    if (!(error instanceof StoreError)) await record(false, errorText(error));
    throw error;
  });
  const bad = found.verified.filter(({ problems }) => problems.length > 0);
  const sentences = bad.map(({ projectId, branchId, problems }) => `${projectId} ${branchId}: ${problems.join('; ')}`);
  const text = [`${found.verified.length} of ${found.available} histories were restored and checked.`, ...sentences];
  await record(found.isOk, text.join('\n'));
  return found;
}
