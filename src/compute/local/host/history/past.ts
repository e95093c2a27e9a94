/** Which history belongs to a branch's data: the record beside the data names it. */
import type { KeyedLock } from '../../../../lib/keyed-lock.ts';
import type { BranchRef } from '../../../interface/driver.ts';
import { newPast } from '../branches/create.ts';
import { dataDirectory, type Layout } from '../home/layout.ts';
import { branchLock } from '../home/lock-names.ts';
import { type BranchPast, type BranchRecord, readBranchRecord, writeBranchRecord } from '../home/records.ts';
import { type HistoryPaths, historyPaths } from './files.ts';

/** A branch's data, and the history that belongs to it. */
export interface Kept {
  readonly data: string;
  readonly record: BranchRecord;
  readonly historyId: string;
  readonly paths: HistoryPaths;
}

interface PastParts {
  readonly layout: Layout;
  readonly locks: KeyedLock;
}

export async function findKept(parts: PastParts, ref: BranchRef): Promise<Kept | null> {
  const { layout } = parts;
  const home = layout.branch(ref.projectId, ref.branchId);
  const record = await readBranchRecord(home);
  if (record === null) return null;
  // A directory that an older version made has none yet.
  const { historyId } = record.past ?? (await updatePast(parts, ref, (past) => past));
  const paths = historyPaths(layout.history(ref.projectId, historyId));
  return { data: dataDirectory(home), record, historyId, paths };
}

export function updatePast(
  { layout, locks }: PastParts,
  ref: BranchRef,
  change: (past: BranchPast) => BranchPast,
): Promise<BranchPast> {
  return locks.exclusive(branchLock(ref), async () => {
    const home = layout.branch(ref.projectId, ref.branchId);
    const record = await readBranchRecord(home);
    if (record === null) throw new Error(`branch ${ref.branchId} has no data`);
    const past = change(record.past ?? newPast(null, null));
    await writeBranchRecord(home, { ...record, past });
    return past;
  });
}
