/**
 * The system database of a backup, recovered into a scratch server to be read: what it says of one project at a moment,
 * and the key that its secrets are sealed with.
 */
import { mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { homeKey } from '../../backup/layout.ts';
import { open } from '../../backup/seal/seal.ts';
import { unpackFolder } from '../../backup/tar.ts';
import { stopPostmaster } from '../../compute/local/host/postgres/postmaster.ts';
import type { DatabaseOptions, Sql } from '../../db/client.ts';
import type { Moment } from '../../lib/moments.ts';
import { createSecretBox, type SecretBox } from '../../lib/secrets.ts';
import { secretKeyPath } from '../key-files.ts';
import { rebuildSystem, withSystem } from './installation.ts';
import type { RestoreReport } from './report.ts';
import type { Restoring } from './restoring.ts';

export interface SystemReader<T> {
  /** Brings its schema up to that of this program. */
  readonly migrate: (database: DatabaseOptions) => Promise<unknown>;
  /** Null where there is nothing to read, which makes an earlier moment worth trying. */
  readonly read: (sql: Sql) => Promise<T | null>;
}

export interface SystemReading<T> {
  readonly found: T;
  readonly system: RestoreReport['system'];
}

/**
 * At the moment that is asked for. Without one, at the newest; and if the project is not there any more, at the last
 * moment at which the store got data of it.
 */
export async function readStoredSystem<T>(
  restoring: Restoring,
  projectId: string,
  reader: SystemReader<T>,
): Promise<SystemReading<T>> {
  const { options, inventory } = restoring;
  const asked = await readAt(restoring, projectId, reader, options.moment);
  if (asked !== null) return asked;
  const last = inventory.tenants[0]?.document.until?.at;
  const moment = options.moment === null && last !== undefined ? ({ kind: 'time', at: last } as const) : null;
  if (moment !== null) {
    options.say(`the newest system database does not have it any more: reading that of ${moment.at}`);
    const earlier = await readAt(restoring, projectId, reader, moment);
    if (earlier !== null) return earlier;
  }
  const spans = inventory.tenants.map(({ document }) => `${document.bases[0]?.at} to ${document.until?.at}`);
  throw new Error(
    `the system database of that moment has no project ${projectId}; the store has data of it from ${spans.join(', ')}: ` +
      'give one of these moments as --at',
  );
}

async function readAt<T>(
  restoring: Restoring,
  projectId: string,
  { migrate, read }: SystemReader<T>,
  moment: Moment | null,
): Promise<SystemReading<T> | null> {
  const { layout, config, options, inventory } = restoring;
  // Its name is that of an earlier run that was killed, whose server may still be there.
  const directory = join(layout.work, `restore-${projectId}`);
  await stopPostmaster(join(directory, 'pgdata'), config.uids?.systemDatabase ?? null);
  let found: T | null = null;
  try {
    const rebuilt = await rebuildSystem(
      { ...restoring, options: { ...options, moment } },
      directory,
      async (server) => {
        await migrate({ path: server.path, username: 'postgres', database: 'catnap' });
        found = await withSystem(server, read);
      },
    );
    if (found === null) return null;
    const { lsn, lastCommitAt, lost, problems } = rebuilt;
    const until = inventory.system[0]?.document.until?.at ?? null;
    return { found, system: { lsn, lastCommitAt, lost, problems, until } };
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** Opens the secrets of the installation that wrote the backup. */
export async function readStoredBox(
  { backup, layout }: Pick<Restoring, 'backup' | 'layout'>,
  projectId: string,
): Promise<SecretBox> {
  // Named so that the next run finds what a killed one has left: it holds a key.
  const folder = join(layout.work, `home-${projectId}`);
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { mode: 0o700 });
  try {
    await unpackFolder(open(backup.key, homeKey, await backup.store.get(homeKey)), folder);
    return createSecretBox(Buffer.from((await readFile(secretKeyPath(folder), 'utf8')).trim(), 'base64'));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
