/** The history of a snapshot, made once for a store to upload: a base image of its data, and no log. */
import type { BranchHistory } from '../../../../lib/model.ts';
import type { BranchRef } from '../../../interface/driver.ts';
import type { Layout } from '../home/layout.ts';
import type { BranchRecord } from '../home/records.ts';
import { makeBaseOfSnapshot } from './bases.ts';
import { type HistoryPaths, makeHistoryFolder, readBases, writeState } from './files.ts';
import { noHistory } from './prune.ts';

/** Can be repeated after a kill anywhere: the state comes last, and a history without one is not uploaded. */
export async function keepSnapshot(
  layout: Layout,
  { projectId, branchId, tenantUid }: BranchRef,
  { data, record, paths }: { readonly data: string; readonly record: BranchRecord; readonly paths: HistoryPaths },
  group: number | null,
): Promise<BranchHistory> {
  for (const folder of [layout.historiesOf(projectId), paths.directory, paths.log, paths.bases]) {
    makeHistoryFolder(folder, group);
  }
  const { pgVersion, past } = record;
  const at = past?.madeAt ?? new Date().toISOString();
  const [found] = await readBases(paths);
  const base = found ?? (await makeBaseOfSnapshot(paths, { data, tenantUid, group }, at));
  const { timeline, bytes, bytesShared } = base;
  const end = { at: base.at, lsn: base.lsn };
  writeState(paths, { branchId, pgVersion, timeline, copied: end, gaps: [], lostSince: null }, group);
  return { ...noHistory, from: end, until: end, baseCount: 1, baseBytes: bytes - bytesShared };
}
