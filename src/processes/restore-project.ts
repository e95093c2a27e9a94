/**
 * `catnap restore --project`: one project from a backup into a running Catnap. The running Catnap is told first: all
 * rows of the project in one transaction, with an operation for each branch that waits for its data. Then this process
 * brings the data, with the rights of the person who runs it, and the worker puts it into use. A kill at any point
 * leaves operations that end and say so; the same command continues.
 */
import { insertProviderRows, type ProviderRows, selectProviderRows } from '../auth-provider/statements/project-rows.ts';
import { type Core, commandScope } from '../core/context.ts';
import { type Admission, admitProject, type NamedData, resumeAdmission } from '../core/project-restore.ts';
import { chooseIds, idIn } from '../core/stored-project.ts';
import { type Database, openDatabase, type Sql, type Tx } from '../db/client.ts';
import {
  type DeliveryOrigin,
  lockWaiting,
  recordDelivery,
  selectCutOffCopies,
  takeDeliveryLock,
} from '../db/deliveries.ts';
import { migrate } from '../db/migrate.ts';
import { selectOperationStatus } from '../db/operations.ts';
import { type ProjectRows, selectProjectRows } from '../db/project-rows.ts';
import { delay, systemClock } from '../lib/clock.ts';
import type { Config } from '../lib/config.ts';
import { errorText } from '../lib/errors.ts';
import { asOrganizationId, asProjectId, type OperationId, type ProjectId } from '../lib/ids.ts';
import { createSecretBox } from '../lib/secrets.ts';
import { ensureSecretKey } from '../machine/key-files.ts';
import { openBeside } from '../machine/restore/beside.ts';
import { restoreData } from '../machine/restore/branch-data.ts';
import { isOfMachine, momentText } from '../machine/restore/installation.ts';
import type { MissingData, RestoredData, RestoreReport } from '../machine/restore/report.ts';
import type { RestoreOptions, Restoring } from '../machine/restore/restoring.ts';
import { readStoredBox, readStoredSystem } from '../machine/restore/stored-system.ts';
import { systemDatabaseOptions } from '../machine/system-database.ts';
import { loadAllMigrations } from './migrations.ts';

export interface ProjectWish {
  readonly projectId: string;
  readonly asNew: boolean;
  readonly organizationId: string | undefined;
}

export interface ProjectReport extends RestoreReport {
  readonly project: { readonly id: string; readonly name: string };
  /** What did not come along, as sentences. */
  readonly notes: readonly string[];
}

interface Running {
  readonly core: Core;
  readonly restoring: Restoring;
  /** A session of its own: it holds the lock that says that this process lives. */
  readonly life: Sql;
  readonly origin: DeliveryOrigin;
}

export async function restoreProject(
  config: Config,
  wish: ProjectWish,
  options: RestoreOptions,
): Promise<ProjectReport> {
  const startedAt = new Date().toISOString();
  const restoring = await openBeside(config, wish.projectId, options);
  const { backup } = restoring;
  const opened: Database[] = [];
  try {
    const connection = await systemDatabaseOptions(config);
    const openOwn = (poolSize: number) => {
      const database = openDatabase(connection, { poolSize, name: 'catnap-restore', idleSeconds: 0 });
      opened.push(database);
      return database;
    };
    const box = createSecretBox(Buffer.from(await ensureSecretKey(config, false), 'base64'));
    const running: Running = {
      core: { database: openOwn(options.atOnce + 1), box, clock: systemClock, config },
      restoring,
      life: openOwn(1).sql,
      origin: {
        from: backup.store.url,
        installationId: backup.claim.installationId,
        at: options.moment === null ? null : momentText(options.moment),
      },
    };
    return await bring(running, wish, startedAt);
  } finally {
    for (const database of opened) await database.close();
    backup.store.close();
  }
}

async function bring(running: Running, wish: ProjectWish, startedAt: string): Promise<ProjectReport> {
  const { restoring, origin } = running;
  const { say, atOnce } = restoring.options;
  const admitted = await resumeOrAdmit(running, wish);
  const { project, awaited } = admitted.admission;
  const count = awaited.length === 1 ? '1 branch gets its' : `${awaited.length} branches and snapshots get their`;
  say(`project ${project.id} (${project.name}) is there; ${count} data`);
  const restored: RestoredData[] = [];
  const missing: MissingData[] = [];
  const queue = [...awaited];
  const lane = async () => {
    for (let data = queue.shift(); data !== undefined; data = queue.shift()) {
      const outcome = await bringData(running, admitted.admission, data);
      if ('reason' in outcome) missing.push(outcome);
      else restored.push(outcome);
      const title = `${restored.length + missing.length} of ${awaited.length}: ${data.name} (${data.id})`;
      say('reason' in outcome ? `${title}: NOT restored: ${outcome.reason}` : `${title}: restored`);
    }
  };
  const lanes = await Promise.allSettled(Array.from({ length: atOnce }, lane));
  for (const one of lanes) if (one.status === 'rejected') throw one.reason;
  const { id, name } = project;
  const finishedAt = new Date().toISOString();
  const { system, notes } = admitted;
  const facts = { from: origin.from, at: origin.at, startedAt, finishedAt };
  return { ...facts, project: { id, name }, notes, system, restored, missing, unknown: [] };
}

interface Admitted {
  readonly admission: Admission;
  readonly system: RestoreReport['system'];
  readonly notes: readonly string[];
}

const asNewNote = 'a new project has no API keys and no auth integration of the old one';

/** One restore of a project at a time, also of copies of it: they would meet in the same scratch directory. */
async function resumeOrAdmit(running: Running, wish: ProjectWish): Promise<Admitted> {
  const projectId = asProjectId(wish.projectId);
  await takeLock(running, projectId);
  const resumed = wish.asNew ? await resumeCopy(running, wish) : await resume(running, projectId);
  if (resumed === null) return admit(running, wish);
  running.restoring.options.say(`continuing the restore from ${running.origin.from}`);
  const system = { lsn: null, lastCommitAt: null, lost: null, problems: [], until: null };
  return { admission: resumed, system, notes: wish.asNew ? [asNewNote] : [] };
}

const resume = (running: Running, projectId: ProjectId) =>
  command(running, (scope) => resumeAdmission(scope, projectId, running.origin));

/** The project that a killed run of the same command has begun. */
async function resumeCopy(running: Running, { organizationId }: ProjectWish): Promise<Admission | null> {
  const { core, restoring, origin } = running;
  const [projectId] = await selectCutOffCopies(core.database.sql, {
    sourceIds: restoring.inventory.tenants.map(({ document }) => document.branchId),
    origin,
    organizationId: organizationId === undefined ? null : asOrganizationId(organizationId),
  });
  if (projectId === undefined) return null;
  await takeLock(running, projectId);
  return resume(running, projectId);
}

interface Stored {
  readonly rows: ProjectRows;
  readonly provider: readonly ProviderRows[];
}

async function admit(running: Running, wish: ProjectWish): Promise<Admitted> {
  const { restoring, core, origin } = running;
  const { inventory, backup, options } = restoring;
  const projectId = asProjectId(wish.projectId);
  if (inventory.tenants.length === 0) throw new Error(`${backup.store.url} has no data of project ${projectId}`);
  if (inventory.system.length === 0) throw new Error(`${backup.store.url} has no system database that can be used`);
  options.say('reading the system database of the backup');
  const migrations = await loadAllMigrations();
  const { found, system } = await readStoredSystem(restoring, projectId, {
    migrate: (database) => migrate(database, migrations),
    read: (sql) => readProject(sql, projectId),
  });
  const notes: string[] = [];
  const rows = withoutUnstored(running, found.rows, notes);
  const { lastCommitAt, until } = system;
  const end = lastCommitAt ?? until;
  const box = await readStoredBox(restoring, projectId);
  const stored = { rows, box, until: end === null ? null : new Date(end) };
  const ids = chooseIds(rows, wish.asNew);
  if (wish.asNew) {
    await takeLock(running, idIn(ids, projectId));
    notes.push(asNewNote);
  }
  const organizationId = wish.organizationId === undefined ? null : asOrganizationId(wish.organizationId);
  const admission = await command(running, async (scope) => {
    const made = await admitProject(scope, stored, { ids, asNew: wish.asNew, organizationId, origin });
    for (const provider of wish.asNew ? [] : found.provider) {
      const boxes = { old: stored.box, current: core.box };
      if (await insertProviderRows(scope.tx, provider, boxes)) continue;
      notes.push('the project of its auth integration is at the provider already, and stays as it is there');
    }
    return made;
  });
  return { admission, system, notes };
}

async function readProject(sql: Sql, projectId: ProjectId): Promise<Stored | null> {
  const rows = await selectProjectRows(sql, projectId);
  if (rows.projects.length === 0) return null;
  const provider: ProviderRows[] = [];
  for (const { provider_project_id: id, provider_url: url } of rows.auth_integrations) {
    if (id !== null && url === null) provider.push(await selectProviderRows(sql, String(id)));
  }
  return { rows, provider };
}

/** A snapshot that the store does not have would stay without data for ever. */
function withoutUnstored({ restoring }: Running, rows: ProjectRows, notes: string[]): ProjectRows {
  const stored = new Set(restoring.inventory.tenants.map(({ document }) => document.branchId));
  const [kept, left] = [true, false].map((wanted) =>
    rows.snapshots.filter(({ id }) => stored.has(String(id)) === wanted),
  );
  for (const { id, name } of left ?? []) notes.push(`the store has no data of the snapshot ${name} (${id})`);
  return { ...rows, snapshots: kept ?? [] };
}

function command<T>({ core }: Running, work: (scope: ReturnType<typeof commandScope>) => Promise<T>): Promise<T> {
  return core.database.transaction((tx: Tx) => work(commandScope(core, tx)));
}

async function takeLock({ life }: Running, projectId: ProjectId): Promise<void> {
  if (await takeDeliveryLock(life, projectId)) return;
  throw new Error(`another catnap restore brings project ${projectId} at the moment`);
}

async function bringData(
  { core, restoring }: Running,
  { project, adminSecret }: Admission,
  { operationId, id, sourceId, name, isSnapshot }: NamedData,
): Promise<RestoredData | MissingData> {
  const { database } = core;
  const { pgVersion, tenantUid, name: projectName } = project;
  const owner = { projectId: project.id, projectName, pgVersion, tenantUid, id, name, isSnapshot };
  try {
    const restored = await restoreData(restoring, owner, adminSecret, {
      sourceId,
      publish: (receipt, put) =>
        database.transaction(async (tx) => {
          if (!(await lockWaiting(tx, operationId))) throw new Error('it was deleted, or its operation has ended');
          await put();
          await recordDelivery(tx, operationId, { receipt });
        }),
    });
    const reason = await untilEnded(database.sql, operationId);
    return reason === null ? restored : { projectId: project.id, id, name, reason };
  } catch (error) {
    if (isOfMachine(error)) throw error;
    const reason = errorText(error);
    await database.transaction((tx) => recordDelivery(tx, operationId, { failure: `not restored: ${reason}` }));
    await untilEnded(database.sql, operationId);
    return { projectId: project.id, id, name, reason };
  }
}

/** The worker has the last word. Null if the data is in use. */
async function untilEnded(sql: Sql, operationId: OperationId): Promise<string | null> {
  for (;;) {
    const operation = await selectOperationStatus(sql, operationId);
    if (operation === undefined) return 'it was deleted';
    if (operation.status === 'finished') return null;
    if (['error', 'cancelled', 'skipped'].includes(operation.status)) return operation.error ?? operation.status;
    await delay(100);
  }
}
