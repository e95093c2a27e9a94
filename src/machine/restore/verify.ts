/**
 * `catnap backup verify`: really restores histories from the store, each into a scratch directory with a server of its
 * own, and checks what is in them. Nothing that runs is touched.
 */
import { randomBytes } from 'node:crypto';
import { chmod, mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { systemProject } from '../../backup/layout.ts';
import { adminDatabase, adminRole } from '../../compute/interface/own-logins.ts';
import { findStorageRoot } from '../../compute/local/host/disks/storage-image.ts';
import { createLayout, type Layout } from '../../compute/local/host/home/layout.ts';
import { ensureServerBuild } from '../../compute/local/host/postgres/extended-build.ts';
import type { BackupSettings } from '../../lib/backup-settings.ts';
import type { Config } from '../../lib/config.ts';
import { errorText } from '../../lib/errors.ts';
import { type Backup, openBackup, type StoredHistory, takeInventory } from './backup.ts';
import { checkData, type DataCheck } from './check-data.ts';
import { inWords, rebuild } from './rebuild.ts';

export interface VerifyOptions {
  readonly store: BackupSettings;
  readonly keyLine: string;
  /** How many histories, taken at random; null for all. */
  readonly sample: number | null;
  readonly say: (line: string) => void;
}

export interface VerifiedHistory {
  readonly projectId: string;
  readonly branchId: string;
  readonly historyId: string;
  /** The moment up to which it was restored. */
  readonly until: string | null;
  readonly seconds: number;
  readonly check: Omit<DataCheck, 'problems'> | null;
  /** Empty if everything is in order. */
  readonly problems: readonly string[];
}

export interface Verification {
  readonly at: string;
  readonly isOk: boolean;
  readonly available: number;
  readonly verified: readonly VerifiedHistory[];
}

export async function verifyBackup(config: Config, options: VerifyOptions): Promise<Verification> {
  const layout = createLayout(config.home, await findStorageRoot(config.home));
  const backup = await openBackup(options.store, options.keyLine);
  try {
    const { system, tenants, unusable } = await takeInventory(backup);
    const all = [...system.slice(0, 1), ...tenants].filter(({ document }) => document.bases.length > 0);
    const chosen = options.sample === null ? all : pick(all, options.sample);
    const verified: VerifiedHistory[] = [];
    for (const history of chosen) verified.push(await verifyOne({ config, layout, backup }, history, options.say));
    for (const { projectId, historyId, reason } of unusable.filter(({ reason }) => !/not finished/.test(reason))) {
      verified.push({ projectId, branchId: '', historyId, until: null, seconds: 0, check: null, problems: [reason] });
    }
    const isOk = verified.length > 0 && verified.every(({ problems }) => problems.length === 0);
    return { at: new Date().toISOString(), isOk, available: all.length, verified };
  } finally {
    backup.store.close();
  }
}

function pick<T>(all: readonly T[], count: number): T[] {
  const left = [...all];
  return Array.from({ length: Math.min(count, left.length) }, () =>
    left.splice(Math.floor(Math.random() * left.length), 1),
  ).flat();
}

interface Scratch {
  readonly config: Config;
  readonly layout: Layout;
  readonly backup: Backup;
}

async function verifyOne(
  { config, layout, backup }: Scratch,
  history: StoredHistory,
  say: (line: string) => void,
): Promise<VerifiedHistory> {
  const { projectId, historyId, document } = history;
  const startedAt = performance.now();
  const directory = join(layout.work, `verify-${randomBytes(4).toString('hex')}`);
  let check: DataCheck | null = null;
  const problems: string[] = [];
  try {
    await mkdir(directory, { mode: 0o711 });
    await chmod(directory, 0o711);
    const { build } = await ensureServerBuild(document.pgVersion, config, layout, say);
    const isSystem = projectId === systemProject;
    const [superuser, database] = isSystem ? ['postgres', 'postgres'] : [adminRole, adminDatabase];
    const rebuilt = await rebuild({
      backup,
      history,
      moment: null,
      directory,
      // A uid between Catnap's own and those of the tenants, which nobody else has.
      server: { build, layout, uid: config.uids === null ? null : config.uids.firstTenant - 1 },
      inspect: async (server) => {
        check = await checkData(server, superuser, database);
      },
    });
    problems.push(...rebuilt.problems);
    if (rebuilt.lost !== null) problems.push(`${rebuilt.lost.reason}: ${inWords(rebuilt.lost)}`);
  } catch (error) {
    problems.push(errorText(error));
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
  const found = check as DataCheck | null;
  problems.push(...(found?.problems ?? []));
  const seconds = (performance.now() - startedAt) / 1_000;
  const { branchId, until } = document;
  const facts = found === null ? null : withoutProblems(found);
  const verdict = problems.length === 0 ? describe(facts) : `NOT in order: ${problems.join('; ')}`;
  say(`${projectId} ${branchId} (history ${historyId}): ${verdict}, ${seconds.toFixed(1)} s`);
  return { projectId, branchId, historyId, until: until?.at ?? null, seconds, check: facts, problems };
}

const withoutProblems = ({ problems: _, ...facts }: DataCheck) => facts;

function describe(check: Omit<DataCheck, 'problems'> | null): string {
  if (check === null) return 'nothing was checked';
  const how = check.method === 'amcheck' ? 'checked with amcheck' : 'read in full (there is no amcheck)';
  return `${check.rows} rows in ${check.tables} tables, ${check.indexes} indexes, ${how}`;
}
