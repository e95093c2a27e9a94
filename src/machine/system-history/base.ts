/** Base images of the running system database: a copy of its directory while a backup is held open. */
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { abandonBase, type BaseSource, beginLiveBase, finishLiveBase } from '../../compute/local/host/history/bases.ts';
import { type BaseRecord, type HistoryPaths, notBefore, readState } from '../../compute/local/host/history/files.ts';
import type { BackupStop, HistorySession } from './session.ts';

/** `copyLog` is called with the end of the backup, before the image counts as a base. */
export async function makeBase(
  session: HistorySession,
  paths: HistoryPaths,
  source: BaseSource,
  copyLog: (end: BackupStop) => Promise<void>,
): Promise<BaseRecord> {
  await session.beginBackup();
  let isOpen = true;
  try {
    const begun = await beginLiveBase(paths, source);
    try {
      isOpen = false;
      const end = await session.endBackup();
      await copyLog(end);
      const at = notBefore(await readState(paths), end.at);
      return await finishLiveBase(paths, begun, { ...end, at }, source.group);
    } catch (error) {
      await abandonBase(paths, begun.name);
      throw error;
    }
  } catch (error) {
    // A session in the middle of a backup could not begin the next one.
    if (isOpen) await session.endBackup().catch(() => undefined);
    throw error;
  }
}

/** What a killed Catnap has left. */
export async function removeUnfinishedBases({ bases }: HistoryPaths): Promise<void> {
  for (const name of await readdir(bases)) {
    if (name.startsWith('.')) await rm(join(bases, name), { recursive: true, force: true });
  }
}
