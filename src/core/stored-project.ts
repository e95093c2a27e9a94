/**
 * Makes the rows of a project that were read from a backup rows of this installation: its ids where they are free or
 * new ones, its secrets sealed with the key of this installation, and nothing that was true of the old machine alone.
 */
import { randomUUID } from 'node:crypto';
import { periodBounds, periodOf, type Usage, usageAt } from '../db/consumption.ts';
import type { ProjectRows } from '../db/project-rows.ts';
import type { TableRow } from '../db/rows.ts';
import { hourMs } from '../lib/clock.ts';
import {
  asProjectId,
  newBranchId,
  newEndpointId,
  newProjectId,
  newSavedQueryId,
  newSnapshotId,
  type OrganizationId,
  type ProjectId,
  type UserId,
} from '../lib/ids.ts';
import { isFindable, type SecretBox } from '../lib/secrets.ts';
import { adminKeySealContext, firstKeysSealContext, webhookSecretSealContext } from './auth-integration.ts';
import type { CatalogSnapshot } from './catalog-snapshot.ts';
import { adminSecretSealContext } from './project.ts';
import { passwordSealContext } from './role.ts';

export interface StoredProject {
  readonly rows: ProjectRows;
  /** Opens what the installation that wrote them has sealed. */
  readonly box: SecretBox;
  /** How far the backup goes; null if that is not known. */
  readonly until: Date | null;
}

export interface NewHome {
  /** By id in the backup. */
  readonly ids: ReadonlyMap<string, string>;
  readonly isNew: boolean;
  readonly organizationId: OrganizationId;
  readonly ownerId: UserId;
  /** Whoever made something and is not known here is replaced by the owner. */
  readonly isUserKnown: (id: string) => boolean;
  readonly regionId: string;
  readonly tenantUid: number | null;
  readonly box: SecretBox;
  readonly now: Date;
}

const text = (value: unknown) => String(value);

export const idsOf = (rows: ProjectRows) =>
  [...rows.projects, ...rows.branches, ...rows.endpoints, ...rows.snapshots].map(({ id }) => text(id));

/** An id of its own for everything that has one, or the ones that it had. */
export function chooseIds(rows: ProjectRows, asNew: boolean): Map<string, string> {
  if (!asNew) return new Map(idsOf(rows).map((id) => [id, id]));
  const renew = (some: readonly TableRow[], make: () => string) =>
    some.map(({ id }): [string, string] => [text(id), make()]);
  return new Map([
    ...renew(rows.projects, newProjectId),
    ...renew(rows.branches, newBranchId),
    ...renew(rows.endpoints, newEndpointId),
    ...renew(rows.snapshots, newSnapshotId),
  ]);
}

/** A second project beside the first has no claim to its keys, its users and what it has used. */
export function rehome({ rows, box: old, until }: StoredProject, home: NewHome): ProjectRows {
  const { ids, isNew, now } = home;
  const oldId = asProjectId(text(rows.projects[0]?.id));
  const id = asProjectId(ids.get(oldId) ?? oldId);
  const reseal = resealer(old, home.box);
  const author = (of: unknown) => (home.isUserKnown(text(of)) ? text(of) : home.ownerId);
  const reference = (of: unknown) => (of === null ? null : (ids.get(text(of)) ?? null));
  const at = now.toISOString();
  const kept = (some: readonly TableRow[]) => (isNew ? [] : some);
  const passwordOf = (name: unknown) => [passwordSealContext(oldId, text(name)), passwordSealContext(id, text(name))];
  const open = openSpans(rows.branches, until);
  const ofBranch = (row: TableRow) => ({ ...row, branch_id: reference(row.branch_id) });
  return {
    projects: rows.projects.map((row) => ({
      ...row,
      id,
      organization_id: home.organizationId,
      owner_id: author(row.owner_id),
      region_id: home.regionId,
      tenant_uid: home.tenantUid,
      admin_secret: reseal.bytes(row.admin_secret, [adminSecretSealContext(oldId), adminSecretSealContext(id)]),
      usage: isNew ? {} : usageUntil(until, (row.usage ?? {}) as Usage, open),
      deleting_at: null,
      recoverable_until: null,
    })),
    branches: rows.branches.map((row) => ({
      ...row,
      id: reference(row.id),
      project_id: id,
      parent_id: reference(row.parent_id),
      created_by: author(row.created_by),
      ...asleepBranch,
      usage: isNew ? {} : (row.usage ?? {}),
      expires_at: isPast(row.expires_at, now) ? null : (row.expires_at ?? null),
    })),
    endpoints: rows.endpoints.map((row) => ({
      ...ofBranch(row),
      id: reference(row.id),
      project_id: id,
      ...asleepEndpoint,
      suspended_at: at,
    })),
    roles: rows.roles.map((row) => ({
      ...ofBranch(row),
      password: reseal.bytes(row.password, passwordOf(row.name)),
    })),
    databases: rows.databases.map(ofBranch),
    snapshots: rows.snapshots.map((row) => ({
      ...row,
      id: reference(row.id),
      project_id: id,
      source_branch_id: reference(row.source_branch_id) ?? row.source_branch_id ?? null,
      current_state: 'init',
      receipt: null,
      catalog: reseal.catalog(row.catalog, passwordOf),
    })),
    snapshot_schedules: rows.snapshot_schedules.map(ofBranch),
    project_key_sets: rows.project_key_sets.map((row) => ({
      ...ofBranch(row),
      id: isNew ? randomUUID() : (row.id ?? null),
      project_id: id,
    })),
    api_keys: kept(rows.api_keys).map((row) => ({
      ...row,
      organization_id: home.organizationId,
      created_by: author(row.created_by),
    })),
    auth_integrations: kept(rows.auth_integrations).map((row) => ({
      ...ofBranch(row),
      ...freshIntegration,
      poll_at: at,
      admin_key: reseal.bytes(row.admin_key, twice(adminKeySealContext(text(row.provider_project_id)))),
      webhook_secret: reseal.bytes(row.webhook_secret, twice(webhookSecretSealContext(text(row.id)))),
      first_keys: reseal.bytes(row.first_keys, twice(firstKeysSealContext(text(row.id)))),
    })),
    auth_user_changes: kept(rows.auth_user_changes),
    consumption_hours: kept(rows.consumption_hours),
    stored_spans: kept([...rows.stored_spans, ...open]),
    saved_queries: rows.saved_queries.map((row) => ({
      ...row,
      id: isNew ? newSavedQueryId() : (row.id ?? null),
      project_id: id,
    })),
  };
}

/** Its data is on the way. What was last seen of its server is not true of this one. */
const asleepBranch = {
  current_state: 'init',
  pending_state: 'ready',
  receipt: null,
  history: null,
  history_due_at: new Date(0).toISOString(),
  replication_slots: null,
  metered_until: null,
  metered_size: null,
  metered_wal: null,
  metered_wal_bytes: null,
  catalog_kept: false,
} as const;

const asleepEndpoint = {
  current_state: 'idle',
  pending_state: null,
  address: null,
  server: null,
  replication: null,
  work_seen: null,
  current_cu: null,
  reserved_cu: null,
  started_at: null,
  metered_until: null,
  metered_cpu_seconds: 0,
} as const;

/** Numbers of databases and of changes of users are others here. */
const freshIntegration = {
  database_id: null,
  operation_id: null,
  synced_seq: 0,
  synced_at: null,
  sync_failures: 0,
  sync_error: null,
  sync_retry_at: null,
  follow_lease: null,
  follow_until: null,
  follow_failures: 0,
  follow_error: null,
} as const;

/** What was stored up to the backup. Metering begins anew here. */
function openSpans(branches: readonly TableRow[], until: Date | null): Span[] {
  return branches.flatMap(({ id, project_id, parent_id, metered_until: since, metered_size: bytes }) => {
    if (typeof since !== 'string' || typeof bytes !== 'number') return [];
    if (until === null || new Date(since) >= until) return [];
    const is_root = parent_id === null;
    return [{ project_id: text(project_id), branch_id: text(id), is_root, since, until: until.toISOString(), bytes }];
  });
}

type Span = TableRow & { readonly since: string; readonly bytes: number };

function usageUntil(until: Date | null, usage: Usage, open: readonly Span[]): { [name: string]: string | number } {
  if (until === null || open.length === 0) return { ...usage };
  const { start } = periodBounds(until);
  const stored = open.map(({ since, bytes }) => {
    const ms = until.getTime() - Math.max(start.getTime(), new Date(since).getTime());
    return (bytes * ms) / hourMs;
  });
  const current = usageAt(usage, until);
  const storage = stored.reduce((sum, one) => sum + one, current.storage ?? 0);
  return { ...current, period: periodOf(until), storage };
}

const twice = (context: string) => [context, context] as const;
const isPast = (time: unknown, now: Date) => typeof time === 'string' && new Date(time) <= now;

/** Of an old and a new context, for what was sealed with the old key. */
function resealer(old: SecretBox, current: SecretBox) {
  const reseal = (sealed: Buffer, [before = '', after = '']: readonly string[]) => {
    const text = old.open(sealed, before);
    return isFindable(sealed) ? current.sealFindable(text, after) : current.seal(text, after);
  };
  return {
    /** As JSON has a column of bytes: `\x00ff`. */
    bytes: (value: unknown, contexts: readonly string[]) =>
      typeof value === 'string' ? `\\x${reseal(Buffer.from(value.slice(2), 'hex'), contexts).toString('hex')}` : null,
    catalog: (value: unknown, contextsOf: (name: unknown) => readonly string[]) => {
      if (value === null || value === undefined) return null;
      const catalog = value as CatalogSnapshot;
      const roles = catalog.roles.map((role) => ({
        ...role,
        password:
          role.password === null
            ? null
            : reseal(Buffer.from(role.password, 'base64'), contextsOf(role.name)).toString('base64'),
      }));
      return { ...catalog, roles };
    },
  };
}

export const idIn = (ids: ReadonlyMap<string, string>, id: ProjectId) => asProjectId(ids.get(id) ?? id);
