/**
 * `catnap restore`: a whole installation from a backup into an empty home. The system database comes first, recovered
 * to the moment; it says which branches there are. Then the key files, then the data of each branch, recovered to the
 * same moment, the most recently used projects first. Every piece appears complete, by a rename, so a restore that was
 * killed anywhere is continued by the next one.
 */
import { randomBytes } from 'node:crypto';
import { chmod, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { homeKey } from '../../backup/layout.ts';
import { open } from '../../backup/seal/seal.ts';
import { unpackFolder } from '../../backup/tar.ts';
import { renameDurably, syncTree } from '../../compute/local/host/copy/tree.ts';
import { ensureBuild } from '../../compute/local/host/postgres/builds.ts';
import { openDatabase, type Sql } from '../../db/client.ts';
import { type DataOwner, forgetOldMachine, selectDataOwners, updateTenantUids } from '../../db/restored.ts';
import type { Config } from '../../lib/config.ts';
import { errorText } from '../../lib/errors.ts';
import type { Moment } from '../../lib/moments.ts';
import { createSecretBox } from '../../lib/secrets.ts';
import { ensureHome, makeHome } from '../home.ts';
import { takeInstanceLock } from '../instance-lock.ts';
import { ensureBackupKey, secretKeyPath } from '../key-files.ts';
import { type ScratchServer, startScratchServer } from '../recovery/scratch-server.ts';
import { adoptCluster, systemDatabaseMajor } from '../system-database.ts';
import { type Backup, type Inventory, openBackup, takeInventory } from './backup.ts';
import { restoreData } from './branch-data.ts';
import { removeJournal, requireEmptyOrSame, writeJournal } from './journal.ts';
import { type Rebuilt, rebuild } from './rebuild.ts';
import { type MissingData, type RestoredData, type RestoreReport, writeReport } from './report.ts';
import type { RestoreOptions, Restoring } from './restoring.ts';

export async function restoreInstallation(config: Config, options: RestoreOptions): Promise<RestoreReport> {
  if (config.databaseUrl !== undefined) {
    throw new Error('CATNAP_DATABASE_URL names a database that is not Catnap’s to restore: unset it for a restore');
  }
  const backup = await openBackup(options.store, options.keyLine);
  try {
    const from = backup.store.url;
    const wanted = { from, installationId: backup.claim.installationId, at: options.moment };
    const begun = await requireEmptyOrSame(config.home, wanted);
    options.say(begun === null ? `reading what ${from} holds` : `continuing the restore from ${from}`);
    const inventory = await takeInventory(backup);
    if (inventory.system.length === 0) throw new Error(withoutSystem(backup, inventory));
    await makeHome(config.home, 0o700);
    const startedAt = begun?.startedAt ?? new Date().toISOString();
    await writeJournal(config.home, { ...wanted, startedAt });
    const layout = await ensureHome(config);
    const lock = await takeInstanceLock(join(layout.home, 'catnap.sock'), layout.home);
    try {
      return await restoreAll({ config, layout, backup, inventory, options }, startedAt);
    } finally {
      await lock.release();
    }
  } finally {
    backup.store.close();
  }
}

function withoutSystem({ store }: Backup, { unusable }: Inventory): string {
  const broken = unusable.find(({ projectId }) => projectId === 'system');
  if (broken !== undefined) return `the system database in ${store.url} cannot be used: ${broken.reason}`;
  return (
    `${store.url} holds no system database: it was not Catnap’s own server, or its first copy was never finished. ` +
    'docs/backup.md says how to restore single branches with plain tools'
  );
}

async function restoreAll(restoring: Restoring, startedAt: string): Promise<RestoreReport> {
  const { config, layout, backup, options, inventory } = restoring;
  const system = await restoreSystem(restoring);
  await restoreKeyFiles(restoring);
  const owners = await readOwners(restoring);
  const { restored, missing } = await restoreOwners(restoring, owners);
  const known = new Set(owners.map(({ id }) => id));
  const strangers = inventory.tenants.filter(({ document }) => !known.has(document.branchId));
  const report: RestoreReport = {
    from: backup.store.url,
    at: options.moment === null ? null : momentText(options.moment),
    startedAt,
    finishedAt: new Date().toISOString(),
    system,
    restored,
    missing: [...missing, ...brokenOnes(inventory)],
    unknown: strangers.map(({ projectId, historyId, document }) => ({
      projectId,
      historyId,
      branchId: document.branchId,
    })),
  };
  await writeReport(layout.home, report);
  await rm(join(layout.system, 'restored.json'), { force: true });
  await removeJournal(config.home);
  return report;
}

/**
 * A history whose document cannot be read belongs to a branch that nobody can name. One that has none never was a whole
 * copy: if its branch has no other, the branch is missing by its name, and otherwise it was deleted soon.
 */
function brokenOnes({ unusable }: Inventory): MissingData[] {
  return unusable
    .filter(({ projectId, reason }) => projectId !== 'system' && !/not finished/.test(reason))
    .map(({ projectId, historyId, reason }) => ({ projectId, id: historyId, name: 'a history', reason }));
}

export const momentText = (moment: Moment) => (moment.kind === 'time' ? moment.at : moment.lsn);

type SystemResult = RestoreReport['system'];

async function restoreSystem(restoring: Restoring): Promise<SystemResult> {
  const { layout, config, options } = restoring;
  const resultFile = join(layout.system, 'restored.json');
  const done = await readFile(resultFile, 'utf8').catch(() => null);
  const target = join(layout.system, 'pgdata');
  const isThere = (await readdir(target).catch(() => [])).length > 0;
  if (done !== null && isThere) return JSON.parse(done) as SystemResult;
  options.say('restoring the system database');
  const making = join(layout.system, 'restoring');
  const rebuilt = await rebuildSystem(restoring, making, async (server) => {
    await adoptCluster(config, layout, server);
    await withSystem(server, async (sql) => {
      await updateTenantUids(sql, config.uids?.firstTenant ?? null);
      await forgetOldMachine(sql);
    });
  });
  const until = restoring.inventory.system[0]?.document.until?.at ?? null;
  const { lsn, lastCommitAt, lost, problems } = rebuilt;
  const result = { lsn, lastCommitAt, lost, problems, until };
  await writeFile(resultFile, JSON.stringify(result), { mode: 0o600 });
  await renameDurably(join(making, 'pgdata'), target);
  await rm(making, { recursive: true, force: true });
  options.say(`the system database is restored; its last change is of ${lastCommitAt ?? 'its base image'}`);
  return result;
}

/** The newest history that has the moment. */
export async function rebuildSystem(
  { layout, config, backup, inventory, options }: Restoring,
  directory: string,
  inspect: (server: ScratchServer) => Promise<void>,
): Promise<Rebuilt> {
  const build = await ensureBuild(systemDatabaseMajor, config, layout, options.say);
  const server = { build, layout, uid: config.uids?.systemDatabase ?? null };
  let refusal: unknown;
  for (const history of inventory.system) {
    await rm(directory, { recursive: true, force: true });
    // The server's own uid passes through.
    await mkdir(directory, { mode: 0o711 });
    await chmod(directory, 0o711);
    try {
      return await rebuild({ backup, history, moment: options.moment, directory, server, inspect });
    } catch (error) {
      refusal ??= error;
    }
  }
  throw new Error(`the system database cannot be restored: ${errorText(refusal)}`, { cause: refusal });
}

export async function withSystem<T>(server: ScratchServer, work: (sql: Sql) => Promise<T>): Promise<T> {
  const options = { path: server.path, username: 'postgres', database: 'catnap' };
  const database = openDatabase(options, { poolSize: 1, name: 'catnap-restore' });
  try {
    return await work(database.sql);
  } finally {
    await database.close();
  }
}

/** Everything that was in the home beside data: the sealing key, the first API key, certificates. */
async function restoreKeyFiles({ backup, layout, options }: Restoring): Promise<void> {
  const folder = join(layout.work, `home-${randomBytes(4).toString('hex')}`);
  await mkdir(folder, { mode: 0o700 });
  try {
    await unpackFolder(open(backup.key, homeKey, await backup.store.get(homeKey)), folder);
    const files = (await readdir(folder, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile());
    for (const entry of files) {
      const path = join(entry.parentPath, entry.name);
      const target = join(layout.home, path.slice(folder.length + 1));
      await mkdir(dirname(target), { recursive: true, mode: 0o700 });
      await writeFile(`${target}.new`, await readFile(path), { mode: 0o600, flush: true });
      await renameDurably(`${target}.new`, target);
    }
    // So that the restored installation goes on writing to the same store.
    await ensureBackupKey(layout.home, () => options.keyLine.trim());
    await syncTree(layout.home);
    options.say(`put back ${files.length} key files`);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function readOwners({ config, layout }: Restoring): Promise<DataOwner[]> {
  const build = await ensureBuild(systemDatabaseMajor, config, layout);
  const server = await startScratchServer({
    build,
    layout,
    uid: config.uids?.systemDatabase ?? null,
    dataDirectory: join(layout.system, 'pgdata'),
    logFile: join(layout.system, 'restore.log'),
  });
  try {
    return await withSystem(server, selectDataOwners);
  } finally {
    await server.stop();
    await rm(join(layout.system, 'restore.log'), { force: true });
  }
}

async function restoreOwners(restoring: Restoring, owners: readonly DataOwner[]) {
  const { layout, options } = restoring;
  const box = createSecretBox(Buffer.from((await readFile(secretKeyPath(layout.home), 'utf8')).trim(), 'base64'));
  const restored: RestoredData[] = [];
  const missing: MissingData[] = [];
  let next = 0;
  const lane = async () => {
    for (let owner = owners[next++]; owner !== undefined; owner = owners[next++]) {
      const { projectId, projectName, id, name } = owner;
      const title = `project ${projectId} (${projectName}), ${name} (${id})`;
      try {
        const adminSecret = box.open(owner.adminSecret, options.sealContext(projectId));
        const data = await restoreData(restoring, owner, adminSecret);
        restored.push(data);
        const count = `${restored.length + missing.length} of ${owners.length}`;
        options.say(
          `${count}: ${title}: restored${data.seconds === 0 ? ' before' : ` in ${data.seconds.toFixed(1)} s`}`,
        );
      } catch (error) {
        if (isOfMachine(error)) throw error;
        if (owner.isListed) missing.push({ projectId, id, name, reason: errorText(error) });
        options.say(`${title}: NOT restored: ${errorText(error)}`);
      }
    }
  };
  const lanes = await Promise.allSettled(Array.from({ length: options.atOnce }, lane));
  for (const one of lanes) if (one.status === 'rejected') throw one.reason;
  return { restored, missing };
}

/** A full disk or a store that is away stops the restore, which is then continued; other failures are of one branch. */
export function isOfMachine(error: unknown): boolean {
  const { name, code, kind } = error as { name?: string; code?: string; kind?: string };
  return name === 'StoreError' || kind === 'disk_full' || ['ENOSPC', 'EDQUOT', 'EIO', 'EROFS'].includes(code ?? '');
}
