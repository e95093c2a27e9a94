/** What a restore has done and what it could not do, for people and for `restore-report.json` in the data home. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { LostSpan, Rebuilt } from './rebuild.ts';

export interface RestoredData {
  readonly projectId: string;
  readonly projectName: string;
  readonly id: string;
  readonly name: string;
  /** Where its data ends; null when the server did not report it. */
  readonly lsn: string | null;
  readonly lastCommitAt: string | null;
  /** How far the backup of it had come; null for an earlier moment. */
  readonly until: string | null;
  readonly seconds: number;
  readonly lost: LostSpan | null;
  readonly problems: readonly string[];
}

export interface MissingData {
  readonly projectId: string;
  readonly id: string;
  readonly name: string;
  readonly reason: string;
}

export interface RestoreReport {
  readonly from: string;
  readonly at: string | null;
  readonly startedAt: string;
  readonly finishedAt: string;
  readonly system: Pick<Rebuilt, 'lsn' | 'lastCommitAt' | 'lost' | 'problems'> & { readonly until: string | null };
  readonly restored: readonly RestoredData[];
  /** Known to the system database, and without data that could be restored. */
  readonly missing: readonly MissingData[];
  /** In the store, and not known to the system database of that moment. */
  readonly unknown: readonly { readonly projectId: string; readonly branchId: string; readonly historyId: string }[];
}

export const isComplete = ({ system, restored, missing }: RestoreReport) =>
  system.lost === null && missing.length === 0 && restored.every(({ lost }) => lost === null);

export async function writeReport(home: string, report: RestoreReport): Promise<string> {
  const path = join(home, 'restore-report.json');
  await writeFile(path, `${JSON.stringify(report, null, 2)}\n`, { mode: 0o600 });
  return path;
}
