/** What the parts of a restore share. */
import type { Layout } from '../../compute/local/host/home/layout.ts';
import type { BackupSettings } from '../../lib/backup-settings.ts';
import type { Config } from '../../lib/config.ts';
import type { ProjectId } from '../../lib/ids.ts';
import type { Moment } from '../../lib/moments.ts';
import type { Backup, Inventory } from './backup.ts';

export interface RestoreOptions {
  readonly store: BackupSettings;
  readonly keyLine: string;
  readonly moment: Moment | null;
  /** Branches that are restored at the same time. */
  readonly atOnce: number;
  /** The context with which the password of Catnap's login in a project was sealed. */
  readonly sealContext: (projectId: ProjectId) => string;
  readonly say: (line: string) => void;
}

export interface Restoring {
  readonly config: Config;
  readonly layout: Layout;
  readonly backup: Backup;
  readonly inventory: Inventory;
  readonly options: RestoreOptions;
}
