/**
 * Takes a project from a backup into this installation: all its rows at once, and for each branch and snapshot an
 * operation that waits until its data is brought. It never replaces anything that is here.
 */
import { selectMembers, selectOrganization } from '../db/accounts.ts';
import { lockAnyProject } from '../db/deleted.ts';
import { type DeliveryOrigin, insertDelivery, selectDataNames, selectMissingDeliveries } from '../db/deliveries.ts';
import {
  insertProjectRows,
  isUserKnown,
  keepProviderProject,
  selectOrganizationIds,
  selectTakenIds,
  updateIntegrationDatabase,
} from '../db/project-rows.ts';
import { nextTenantNumber, type ProjectRow } from '../db/projects.ts';
import { numberFrom } from '../db/rows.ts';
import { CatnapError, withDetails } from '../lib/errors.ts';
import {
  asBranchId,
  asOrganizationId,
  asProjectId,
  asSnapshotId,
  type OperationId,
  type OrganizationId,
  type ProjectId,
} from '../lib/ids.ts';
import type { CommandScope } from './context.ts';
import { branchKey, enqueue } from './operation.ts';
import { adminSecretSealContext } from './project.ts';
import { requireRoomForProject } from './project-create.ts';
import { dataOf } from './snapshot.ts';
import { idIn, idsOf, rehome, type StoredProject } from './stored-project.ts';

export interface AdmissionOptions {
  /** As `chooseIds` returns them. */
  readonly ids: ReadonlyMap<string, string>;
  /** They are new ones, whether the old ones are free or not. */
  readonly asNew: boolean;
  /** The organization that gets it, if not the one it was in. */
  readonly organizationId: OrganizationId | null;
  readonly origin: DeliveryOrigin;
}

/** Data that an operation waits for. */
export interface AwaitedData {
  readonly operationId: OperationId;
  /** Of a branch or a snapshot, here and in the backup. */
  readonly id: string;
  readonly sourceId: string;
  readonly isSnapshot: boolean;
}

export interface NamedData extends AwaitedData {
  readonly name: string;
}

export interface Admission {
  readonly project: Pick<ProjectRow, 'id' | 'name' | 'pgVersion' | 'tenantUid'>;
  /** Of Catnap's login in its servers. */
  readonly adminSecret: string;
  readonly awaited: readonly NamedData[];
}

/** One transaction: afterwards the project is there, and its computes sleep. */
export async function admitProject(
  scope: CommandScope,
  stored: StoredProject,
  { ids, asNew, organizationId: wanted, origin }: AdmissionOptions,
): Promise<Admission> {
  const { tx, config } = scope;
  const old = stored.rows.projects[0];
  if (old === undefined) throw new CatnapError('not_found', 'the backup has no such project');
  requireVersion(scope, Number(old.pg_version));
  if (!asNew) await requireFree(scope, idsOf(stored.rows));
  const organization = await requireHome(scope, wanted, String(old.organization_id));
  await requireRoomForProject(scope, organization);
  const [owner] = await selectMembers(tx, organization.id);
  if (owner === undefined) throw new CatnapError('conflict', `the organization ${organization.id} has no members`);
  const known = new Set<string>();
  const { projects, branches, api_keys: keys } = stored.rows;
  for (const user of [...projects.map((row) => row.owner_id), ...[...branches, ...keys].map((row) => row.created_by)]) {
    if (await isUserKnown(tx, String(user))) known.add(String(user));
  }
  const rows = rehome(stored, {
    ids,
    isNew: asNew,
    organizationId: organization.id,
    ownerId: owner.userId,
    isUserKnown: (id) => known.has(id),
    regionId: config.region,
    tenantUid: config.uids === null ? null : config.uids.firstTenant + (await nextTenantNumber(tx)),
    box: scope.box,
    now: scope.clock.now(),
  });
  const lastSeq = Math.max(0, ...stored.rows.auth_user_changes.map(({ seq }) => Number(seq)));
  // Positions in the tenants' databases are those of the old log: what is copied again must come after them.
  if (rows.auth_user_changes.length > 0) await numberFrom(tx, 'auth_user_changes', 'seq', lastSeq);
  await insertProjectRows(tx, rows);
  for (const row of stored.rows.auth_integrations) {
    if (asNew) break;
    const database = stored.rows.databases.find(({ id }) => id === row.database_id);
    await updateIntegrationDatabase(tx, String(row.id), String(database?.name ?? row.database_name));
    if (row.provider_project_id !== null) await keepProviderProject(tx, String(row.provider_project_id));
  }
  const id = idIn(ids, asProjectId(String(old.id)));
  const wishes = [...stored.rows.branches, ...stored.rows.snapshots].map((row) => String(row.id));
  const snapshots = new Set(rows.snapshots.map((row) => String(row.id)));
  const awaited: AwaitedData[] = [];
  for (const sourceId of wishes) {
    const dataId = ids.get(sourceId) ?? sourceId;
    awaited.push(await queueReception(scope, { projectId: id, dataId, sourceId, origin }, snapshots.has(dataId)));
  }
  return describe(scope, id, awaited);
}

/** For a restore that was cut off; null if there is no such project. */
export async function resumeAdmission(
  scope: CommandScope,
  id: ProjectId,
  origin: DeliveryOrigin,
): Promise<Admission | null> {
  const project = await lockAnyProject(scope.tx, id);
  if (project === undefined) return null;
  if (project.deletingAt !== null) {
    const advice =
      project.recoverableUntil === null
        ? 'it is being removed: wait until it is gone'
        : `it can be recovered until ${project.recoverableUntil.toISOString()} (catnap recover), or purged first`;
    throw new CatnapError('conflict', `project ${id} is here, deleted; ${advice}`);
  }
  const missing = await selectMissingDeliveries(scope.tx, id);
  if (missing.length === 0) {
    throw new CatnapError(
      'conflict',
      `project ${id} is here, and a restore replaces nothing: restore it as a new project (--as-new), or delete and ` +
        'purge this one first',
    );
  }
  const awaited: AwaitedData[] = [];
  for (const one of missing) {
    if (JSON.stringify(sorted(one.origin)) !== JSON.stringify(sorted(origin))) {
      const { from, at } = one.origin;
      throw new CatnapError(
        'conflict',
        `project ${id} is being restored from ${from} at ${at ?? 'its newest moment'}: continue that, or delete it`,
      );
    }
    const { operationId, dataId, sourceId } = one;
    const isSnapshot = dataId.startsWith('snap-');
    if (one.isWaiting && one.failure === null) awaited.push({ operationId, id: dataId, sourceId, isSnapshot });
    else awaited.push(await queueReception(scope, one, isSnapshot));
  }
  return describe(scope, id, awaited);
}

const sorted = ({ from, installationId, at }: DeliveryOrigin) => [from, installationId, at];

async function describe(scope: CommandScope, id: ProjectId, awaited: readonly AwaitedData[]): Promise<Admission> {
  const project = await lockAnyProject(scope.tx, id);
  if (project === undefined) throw new Error('BUG: the project was not inserted');
  const adminSecret = scope.box.open(project.adminSecret, adminSecretSealContext(id));
  const names = await selectDataNames(scope.tx, id);
  return { project, adminSecret, awaited: awaited.map((one) => ({ ...one, name: names.get(one.id) ?? one.id })) };
}

interface Wish {
  readonly projectId: ProjectId;
  readonly dataId: string;
  readonly sourceId: string;
  readonly origin: DeliveryOrigin;
}

async function queueReception(scope: CommandScope, wish: Wish, isSnapshot: boolean): Promise<AwaitedData> {
  const { projectId, dataId, sourceId, origin } = wish;
  const branchId = isSnapshot ? dataOf(asSnapshotId(dataId)) : asBranchId(dataId);
  const operation = await enqueue(scope, 'receive_data', {
    projectId,
    ...(isSnapshot ? { state: { snapshot: dataId } } : { branchId }),
    exclusive: [branchKey(branchId)],
  });
  await insertDelivery(scope.tx, { operationId: operation.id, projectId, dataId, sourceId, origin });
  return { operationId: operation.id, id: dataId, sourceId, isSnapshot };
}

function requireVersion({ config }: CommandScope, pgVersion: number): void {
  if (config.pgVersions.includes(pgVersion)) return;
  throw new CatnapError(
    'unprocessable',
    `the project needs Postgres ${pgVersion}, and this installation has ${config.pgVersions.join(', ')}: ` +
      `set CATNAP_PG_BIN_${pgVersion}`,
  );
}

async function requireFree(scope: CommandScope, ids: readonly string[]): Promise<void> {
  const taken = await selectTakenIds(scope.tx, ids);
  if (taken.length === 0) return;
  const message = 'ids of the project are taken here: restore it as a new project (--as-new)';
  throw new CatnapError('conflict', withDetails(message, { ids: taken.join(', ') }));
}

/** The one that is asked for, its own, or the only one. */
async function requireHome(scope: CommandScope, wanted: OrganizationId | null, own: string) {
  const found = await selectOrganization(scope.tx, wanted ?? asOrganizationId(own));
  if (found !== undefined) return found;
  const ids = await selectOrganizationIds(scope.tx);
  const only =
    ids.length === 1 && wanted === null
      ? await selectOrganization(scope.tx, asOrganizationId(ids[0] ?? ''))
      : undefined;
  if (only !== undefined) return only;
  const message = wanted === null ? `its organization ${own} is not here` : `there is no organization ${wanted}`;
  throw new CatnapError('unprocessable', `${message}: --org must be one of ${ids.join(', ')}`);
}
