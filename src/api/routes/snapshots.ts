/** Snapshots: taken, listed, changed, deleted, restored, and made by a schedule. */
import { createSnapshot, deleteSnapshot, listSnapshots, updateSnapshotOf } from '../../core/snapshot.ts';
import { finalizeRestore, restoreSnapshot } from '../../core/snapshot-restore.ts';
import { getSchedule, setSchedule } from '../../core/snapshot-schedule.ts';
import type { App } from '../kit/app-type.ts';
import type { ApiParts } from '../kit/parts.ts';
import { BranchParams, ProjectParams } from '../schemas/common.ts';
import { errorReply } from '../schemas/error.ts';
import {
  EmptyReply,
  FinalizeRestoreBody,
  ScheduleBody,
  ScheduleReply,
  SnapshotCreateQuery,
  SnapshotCreateReply,
  SnapshotOperationsReply,
  SnapshotParams,
  SnapshotReply,
  SnapshotRestoreBody,
  SnapshotRestoreQuery,
  SnapshotRestoreReply,
  SnapshotsReply,
  SnapshotUpdateBody,
} from '../schemas/snapshot.ts';
import { operationViews } from '../views/operation.ts';
import { branchAddress, projectAddress } from '../views/params.ts';
import {
  restoredSnapshotView,
  scheduleView,
  snapshotAddress,
  snapshotInput,
  snapshotRestoreInput,
  snapshotView,
} from '../views/snapshot.ts';
import { ask, write } from './command.ts';

const tags = ['Snapshots'];
const collection = '/projects/:project_id/snapshots';
const member = `${collection}/:snapshot_id`;
const branch = '/projects/:project_id/branches/:branch_id';

export function snapshotRoutes(app: App, parts: ApiParts): void {
  const list = {
    tags,
    operationId: 'listSnapshots',
    summary: 'List snapshots',
    description: 'All of a project, also those of branches that are deleted; the newest first.',
    params: ProjectParams,
    response: { 200: SnapshotsReply, ...errorReply },
  };
  app.get(collection, { schema: list }, (request) =>
    ask(parts, request, async (scope, caller) => {
      const snapshots = await listSnapshots(scope, caller, projectAddress(request.params).projectId);
      return { snapshots: snapshots.map(snapshotView) };
    }),
  );

  const create = {
    tags,
    operationId: 'createSnapshot',
    summary: 'Take a snapshot of a branch',
    description: 'Of its head, or of a moment in its history. A compute that sleeps is not woken for it.',
    params: BranchParams,
    querystring: SnapshotCreateQuery,
    response: { 200: SnapshotCreateReply, ...errorReply },
  };
  app.post(`${branch}/snapshot`, { schema: create }, (request) =>
    write(parts, request, async (scope, caller) => {
      const address = branchAddress(request.params);
      const made = await createSnapshot(scope, caller, address, snapshotInput(request.query));
      return { snapshot: snapshotView(made.snapshot), operations: operationViews(made.operations) };
    }),
  );

  changeRoutes(app, parts);
  restoreRoutes(app, parts);
  scheduleRoutes(app, parts);
}

function changeRoutes(app: App, parts: ApiParts): void {
  const update = {
    tags,
    operationId: 'updateSnapshot',
    summary: 'Change a snapshot',
    description: 'Renames it, or sets when it is deleted automatically. What is left out stays as it is.',
    params: SnapshotParams,
    body: SnapshotUpdateBody,
    response: { 200: SnapshotReply, ...errorReply },
  };
  app.patch(member, { schema: update }, (request) =>
    write(parts, request, async (scope, caller) => {
      const { name, expires_at: expiresAt } = request.body.snapshot;
      const changed = await updateSnapshotOf(scope, caller, snapshotAddress(request.params), { name, expiresAt });
      return { snapshot: snapshotView(changed) };
    }),
  );

  const remove = {
    tags,
    operationId: 'deleteSnapshot',
    summary: 'Delete a snapshot',
    description: 'Branches that were restored from it stay as they are.',
    params: SnapshotParams,
    response: { 202: SnapshotOperationsReply, ...errorReply },
  };
  app.delete(member, { schema: remove }, (request, reply) => {
    reply.status(202);
    return write(parts, request, async (scope, caller) => {
      return { operations: operationViews(await deleteSnapshot(scope, caller, snapshotAddress(request.params))) };
    });
  });
}

function restoreRoutes(app: App, parts: ApiParts): void {
  const restore = {
    tags,
    operationId: 'restoreSnapshot',
    summary: 'Restore a snapshot',
    description: 'To a new branch, which takes the place of another one at once or by `finalize_restore`.',
    params: SnapshotParams,
    querystring: SnapshotRestoreQuery,
    body: SnapshotRestoreBody,
    response: { 200: SnapshotRestoreReply, ...errorReply },
  };
  app.post(`${member}/restore`, { schema: restore }, (request) =>
    write(parts, request, async (scope, caller) => {
      const input = snapshotRestoreInput(request.query, request.body);
      const address = snapshotAddress(request.params);
      const restored = await restoreSnapshot(scope, caller, address, input);
      return restoredSnapshotView(parts.config, restored, parts.clock.now());
    }),
  );

  const finalize = {
    tags,
    operationId: 'finalizeRestoreBranch',
    summary: 'Finalize the restore of a snapshot',
    description:
      'The restored branch gets the name and the computes of the branch it replaces, which is renamed. Connections drop briefly.',
    params: BranchParams,
    body: FinalizeRestoreBody,
    response: { 200: SnapshotOperationsReply, ...errorReply },
  };
  app.post(`${branch}/finalize_restore`, { schema: finalize }, (request) =>
    write(parts, request, async (scope, caller) => {
      const address = branchAddress(request.params);
      const operations = await finalizeRestore(scope, caller, address, request.body.name ?? null);
      return { operations: operationViews(operations) };
    }),
  );
}

function scheduleRoutes(app: App, parts: ApiParts): void {
  const path = `${branch}/backup_schedule`;
  const get = {
    tags,
    operationId: 'getSnapshotSchedule',
    summary: 'Get the snapshot schedule of a branch',
    description: 'Empty for a branch that has none.',
    params: BranchParams,
    response: { 200: ScheduleReply, ...errorReply },
  };
  app.get(path, { schema: get }, (request) =>
    ask(parts, request, async (scope, caller) =>
      scheduleView(await getSchedule(scope, caller, branchAddress(request.params))),
    ),
  );

  const set = {
    tags,
    operationId: 'setSnapshotSchedule',
    summary: 'Set the snapshot schedule of a branch',
    description: 'Replaces the old one; an empty list removes it. Snapshots that were made stay.',
    params: BranchParams,
    body: ScheduleBody,
    response: { 200: EmptyReply, ...errorReply },
  };
  app.put(path, { schema: set }, (request) =>
    write(parts, request, async (scope, caller) => {
      await setSchedule(scope, caller, branchAddress(request.params), request.body.schedule);
      return {};
    }),
  );
}
