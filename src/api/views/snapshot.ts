/** Snapshots and schedules: rows to the wire, and requests to the domain. */
import type { Static } from 'typebox';
import type { Snapshot } from '../../core/snapshot.ts';
import type { RestoredSnapshot, SnapshotRestoreInput } from '../../core/snapshot-restore.ts';
import type { Schedule } from '../../core/snapshot-schedule.ts';
import { invalid } from '../../lib/errors.ts';
import { asBranchId, asSnapshotId } from '../../lib/ids.ts';
import type { ApiConfig } from '../kit/parts.ts';
import type {
  ScheduleReply,
  SnapshotCreateQuery,
  SnapshotRestoreBody,
  SnapshotRestoreQuery,
  SnapshotRestoreReply,
  Snapshot as SnapshotSchema,
} from '../schemas/snapshot.ts';
import { branchView } from './branch.ts';
import { optionalTime, present, time } from './common.ts';
import { endpointView } from './endpoint.ts';
import { operationViews } from './operation.ts';
import { projectAddress } from './params.ts';

export const snapshotAddress = (params: { project_id: string; snapshot_id: string }) => ({
  ...projectAddress(params),
  snapshotId: asSnapshotId(params.snapshot_id),
});

export function snapshotView(row: Snapshot): Static<typeof SnapshotSchema> {
  return {
    id: row.id,
    name: row.name,
    slug: row.slug,
    status: row.currentState === 'ready' ? 'ready' : 'creating',
    ...present({ lsn: row.lsn, timestamp: optionalTime(row.takenAt) }),
    source_branch_id: row.sourceBranchId,
    created_at: time(row.createdAt),
    ...present({ expires_at: optionalTime(row.expiresAt) }),
    manual: row.manual,
    ...sizes(row.receipt),
  };
}

function sizes(receipt: Snapshot['receipt']): { full_size?: number; diff_size?: number } {
  if (receipt === null) return {};
  const bytes = Number(receipt.bytes);
  return { full_size: bytes, diff_size: bytes - Number(receipt.bytesShared) };
}

export function snapshotInput({ lsn, timestamp, name, slug, expires_at }: Static<typeof SnapshotCreateQuery>) {
  return { lsn, timestamp, name, slug, expiresAt: expires_at };
}

export function snapshotRestoreInput(
  query: Static<typeof SnapshotRestoreQuery>,
  body: Static<typeof SnapshotRestoreBody>,
): SnapshotRestoreInput {
  if (query.name !== undefined && body.name !== undefined && query.name !== body.name) {
    throw invalid('invalid request: query.name must be left out: body.name is its newer place');
  }
  return {
    name: body.name ?? query.name,
    targetBranchId: body.target_branch_id === undefined ? undefined : asBranchId(body.target_branch_id),
    finalize: body.finalize_restore ?? false,
  };
}

export function restoredSnapshotView(
  config: ApiConfig,
  { branch, endpoints, operations }: RestoredSnapshot,
  now: Date,
): Static<typeof SnapshotRestoreReply> {
  return {
    branch: branchView(branch, now),
    endpoints: endpoints.map((row) => endpointView(config, row)),
    operations: operationViews(operations),
  };
}

export function scheduleView({ items, nextAt, error }: Schedule): Static<typeof ScheduleReply> {
  return { schedule: [...items], ...present({ next_at: optionalTime(nextAt), error }) };
}
