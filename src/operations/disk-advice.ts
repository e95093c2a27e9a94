/** What the record of an operation says to a person whose disk is full: deleted things may still hold space. */
import type { Sql } from '../db/client.ts';
import { hasAnythingToPurge } from '../db/deleted.ts';

const fullDisk = /the disk is full|No space left on device|ENOSPC/i;
const advice = 'deleted projects and branches still take room: catnap purge removes them';

export async function withDiskAdvice(sql: Sql, reason: string): Promise<string> {
  if (!fullDisk.test(reason) || !(await hasAnythingToPurge(sql))) return reason;
  return `${reason}; ${advice}`;
}
