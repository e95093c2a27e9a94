/** What a restore needs that works beside a running Catnap, in its data home. */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { findStorageRoot } from '../../compute/local/host/disks/storage-image.ts';
import { createLayout } from '../../compute/local/host/home/layout.ts';
import type { Config } from '../../lib/config.ts';
import { answers } from '../instance-lock.ts';
import { openBackup, takeInventory } from './backup.ts';
import type { RestoreOptions, Restoring } from './restoring.ts';

/** The caller closes the store. */
export async function openBeside(config: Config, projectId: string, options: RestoreOptions): Promise<Restoring> {
  await requireRunning(config);
  const layout = createLayout(config.home, await findStorageRoot(config.home));
  const backup = await openBackup(options.store, options.keyLine);
  try {
    return { config, layout, backup, inventory: await takeInventory(backup, projectId), options };
  } catch (error) {
    backup.store.close();
    throw error;
  }
}

/** Directories that another user made could not be used by the Catnap that runs. */
async function requireRunning({ home }: Config): Promise<void> {
  const owner = await stat(home).catch(() => null);
  if (owner === null || !(await answers(join(home, 'catnap.sock')))) {
    throw new Error(`no Catnap runs on ${home}: a project is restored into a running one, so start it (catnap up)`);
  }
  if (owner.uid === process.getuid?.()) return;
  throw new Error(`run this as the user who runs Catnap (uid ${owner.uid}), to whom ${home} belongs`);
}
