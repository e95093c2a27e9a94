/**
 * The schema of a database at a moment of the past. A worker recovers and reads it (`operations/read-schema.ts`); the
 * request waits for that. A request that is repeated meets the reading that is under way, and takes what it has found.
 */
import { countUnfinishedOf } from '../db/operations.ts';
import { selectSameRead, takeSchemaRead } from '../db/schema-reads.ts';
import { CatnapError, notFound } from '../lib/errors.ts';
import { newBranchId, newEndpointId, type OperationId } from '../lib/ids.ts';
import { type Caller, requireBranch, requireProjectLocked } from './access.ts';
import type { Address } from './branch-schema.ts';
import type { CommandScope, Core } from './context.ts';
import { type MomentFields, type MomentInput, resolveMoment } from './moments.ts';
import { enqueue, historyKey } from './operation.ts';
import type { OperationEnd } from './operation-wait.ts';

export interface PastSchema {
  readonly operationId: OperationId;
  /** The branch and the moment, for people. */
  readonly title: string;
}

/** Each takes a server and the space of what its log changed, for as long as it lasts. */
const atOnceMax = 2;

export async function requestPastSchema(
  scope: CommandScope,
  caller: Caller,
  { projectId, branchId }: Address,
  of: { readonly database: string; readonly moment: MomentInput; readonly fields: MomentFields },
): Promise<PastSchema> {
  await requireProjectLocked(scope, caller, projectId);
  const branch = await requireBranch(scope, projectId, branchId);
  const past = await resolveMoment(scope, branch, of.moment, of.fields);
  const title = `${branch.name}@${past.moment.kind === 'time' ? past.moment.at : past.moment.lsn}`;
  const wanted = { past: { ...past }, database: of.database };
  const same = await selectSameRead(scope.tx, projectId, wanted);
  if (same !== undefined) return { operationId: same.id, title };
  if ((await countUnfinishedOf(scope.tx, 'read_schema')) >= atOnceMax) {
    throw new CatnapError('unavailable', 'too many schemas of the past are being read', { retryAfterSeconds: 2 });
  }
  const { id } = await enqueue(scope, 'read_schema', {
    projectId,
    branchId,
    shared: [historyKey(past.branchId)],
    state: { ...wanted, staging: newBranchId(), endpoint: newEndpointId() },
  });
  return { operationId: id, title };
}

/** Of two requests for the same one is too late, and repeats. */
export async function takePastSchema(core: Core, id: OperationId, end: OperationEnd): Promise<string> {
  const result = await takeSchemaRead(core.database.sql, id);
  if (result === undefined) {
    const cause = new Error(end.error ?? end.status);
    throw new CatnapError('unavailable', 'the schema could not be read', { cause, retryAfterSeconds: 1 });
  }
  if ('sql' in result) return result.sql;
  if ('refused' in result) throw new CatnapError('unprocessable', result.refused);
  throw notFound('database');
}
