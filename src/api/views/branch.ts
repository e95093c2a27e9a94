/** Branches: row to wire, request to input. */
import type { Static } from 'typebox';
import type { Branch, BranchPage } from '../../core/branch.ts';
import type { BranchInput, CreatedBranch } from '../../core/branch-create.ts';
import type { RestoreInput } from '../../core/branch-restore.ts';
import { usageAt } from '../../core/project.ts';
import { isOverSize } from '../../core/quota.ts';
import { asBranchId } from '../../lib/ids.ts';
import type { ReplicationSlot } from '../../lib/model.ts';
import type { ApiConfig } from '../kit/parts.ts';
import type {
  Annotation,
  BranchCreateBody,
  BranchCreateReply,
  BranchesQuery,
  BranchesReply,
  BranchRestoreBody,
  Branch as BranchSchema,
  BranchUpdateBody,
} from '../schemas/branch.ts';
import { optionalTime, present, time } from './common.ts';
import { connectionView } from './connection-uri.ts';
import { decodeBranchCursor, encodeBranchCursor } from './cursor.ts';
import { databaseView } from './database.ts';
import { endpointOptions, endpointView } from './endpoint.ts';
import { operationViews } from './operation.ts';
import { roleView } from './role.ts';

export function branchView(row: Branch, now: Date): Static<typeof BranchSchema> {
  return {
    id: row.id,
    project_id: row.projectId,
    ...present({
      parent_id: row.parentId,
      parent_lsn: row.parentLsn,
      parent_timestamp: optionalTime(row.parentTimestamp),
    }),
    name: row.name,
    current_state: row.currentState,
    ...present({ pending_state: row.pendingState }),
    state_changed_at: time(row.stateChangedAt),
    ...present({ logical_size: row.logicalSize }),
    ...(row.sizeQuota ? { size_quota: { limit_bytes: row.sizeQuota, exceeded: isOverSize(row) } } : {}),
    creation_source: 'console',
    primary: row.isDefault,
    default: row.isDefault,
    protected: row.protected,
    ...usageView(usageAt(row.usage, now)),
    created_at: time(row.createdAt),
    updated_at: time(row.updatedAt),
    ...present({ expires_at: optionalTime(row.expiresAt), last_reset_at: optionalTime(row.lastResetAt) }),
    created_by: { name: row.createdByName, image: '' },
    init_source: row.initSource,
    ...present({
      restore_status: row.restoreStatus,
      restored_from: row.restoredFrom,
      restored_as: row.restoredAs,
    }),
    ...present({ receipt: receiptView(row.receipt), replication_slots: row.replicationSlots?.map(slotView) }),
    ...recoveryView(row),
  };
}

function recoveryView({ deletingAt, recoverableUntil, deletionMethod }: Branch) {
  if (deletingAt === null || recoverableUntil === null || deletionMethod === null) return {};
  const times = { deleted_at: time(deletingAt), recoverable_until: time(recoverableUntil) };
  return { recovery: { ...times, deletion_method: deletionMethod } };
}

function slotView({ name, plugin, database, active, walStatus, retainedBytes }: ReplicationSlot) {
  const facts = { name, plugin, database, active, wal_status: walStatus };
  return { ...facts, ...present({ retained_bytes: retainedBytes }) };
}

/** Receipts of the first version say nothing of sharing: what was cloned then shared everything. */
function receiptView(receipt: Branch['receipt']): Static<typeof BranchSchema>['receipt'] | null {
  if (receipt === null) return null;
  const method = String(receipt.method);
  const bytes = Number(receipt.bytes ?? 0);
  const shared = Number(receipt.bytesShared ?? (method === 'reflink' ? bytes : 0));
  return {
    method,
    ...(receipt.lsn == null ? {} : { lsn: String(receipt.lsn) }),
    duration_ms: Number(receipt.durationMs ?? 0),
    bytes_copied: bytes - shared,
    bytes_shared: shared,
  };
}

export function annotationView(row: Branch): Static<typeof Annotation> {
  return { object: { type: 'console/branch', id: row.id }, value: row.annotation, created_at: time(row.createdAt) };
}

/** Without the connection string for a caller who may not have the passwords, which are those of the parent. */
export function createdBranchView(
  config: ApiConfig,
  made: CreatedBranch,
  { hasPasswords, now }: { readonly hasPasswords: boolean; readonly now: Date },
): Static<typeof BranchCreateReply> {
  return {
    branch: branchView(made.branch, now),
    endpoints: made.endpoints.map((row) => endpointView(config, row)),
    operations: operationViews(made.operations),
    roles: made.roles.map((row) => roleView(row)),
    databases: made.databases.map(databaseView),
    ...(made.connection === null || !hasPasswords ? {} : { connection_uris: [connectionView(made.connection)] }),
  };
}

export function branchesView(
  page: BranchPage,
  list: { readonly branches: readonly Branch[]; readonly next: BranchPage['cursor'] },
  now: Date,
): Static<typeof BranchesReply> {
  const annotated = list.branches.filter((row) => Object.keys(row.annotation).length > 0);
  return {
    branches: list.branches.map((row) => branchView(row, now)),
    annotations: Object.fromEntries(annotated.map((row) => [row.id, annotationView(row)])),
    pagination: {
      ...present({ next: list.next === null ? null : encodeBranchCursor(page, list.next) }),
      sort_by: page.sortBy,
      sort_order: page.descending ? 'DESC' : 'ASC',
    },
  };
}

export function branchPage(query: Static<typeof BranchesQuery>): BranchPage {
  const order = { sortBy: query.sort_by ?? 'updated_at', descending: query.sort_order !== 'asc' } as const;
  return {
    ...order,
    search: query.search ?? null,
    cursor: query.cursor === undefined ? null : decodeBranchCursor(order, query.cursor),
    limit: query.limit ?? null,
    withDeleted: query.include_deleted ?? false,
  };
}

export function branchInput(body: Static<typeof BranchCreateBody>): BranchInput {
  const branch = body.branch ?? {};
  return {
    parentId: branch.parent_id ? asBranchId(branch.parent_id) : undefined,
    name: branch.name,
    protected: branch.protected,
    initSource: branch.init_source,
    expiresAt: branch.expires_at === undefined ? undefined : new Date(branch.expires_at),
    parentLsn: branch.parent_lsn,
    parentTimestamp: branch.parent_timestamp,
    archived: branch.archived,
    annotation: body.annotation_value ?? {},
    endpoints: (body.endpoints ?? []).map(endpointOptions),
  };
}

export function restoreInput(
  address: Pick<RestoreInput, 'projectId' | 'branchId'>,
  body: Static<typeof BranchRestoreBody>,
): RestoreInput {
  return {
    ...address,
    sourceId: asBranchId(body.source_branch_id),
    preserveUnderName: body.preserve_under_name || null,
    sourceLsn: body.source_lsn,
    sourceTimestamp: body.source_timestamp,
  };
}

export function branchChange({ branch }: Static<typeof BranchUpdateBody>) {
  const { name, protected: isProtected, expires_at: expiry } = branch;
  return { name, protected: isProtected, expiresAt: typeof expiry === 'string' ? new Date(expiry) : expiry };
}

/** Counters of the month, as branches and projects show them. */
export function usageView(usage: Branch['usage']) {
  return {
    cpu_used_sec: whole(usage.cpu),
    compute_time_seconds: whole(usage.compute),
    active_time_seconds: whole(usage.active),
    written_data_bytes: whole(usage.written),
    data_transfer_bytes: whole(usage.transfer),
  };
}

export const whole = (value: number | undefined) => Math.floor(value ?? 0);
