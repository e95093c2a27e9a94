/** Restores the data directory of one branch or snapshot, and puts it into its place when it is complete. */
import { randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import type { BranchReceipt } from '../../compute/interface/driver.ts';
import { adminDatabase, adminRole, adminScramIterations } from '../../compute/interface/own-logins.ts';
import { makeUnfinished, newPast, publishData } from '../../compute/local/host/branches/create.ts';
import { syncTree } from '../../compute/local/host/copy/tree.ts';
import { readBranchRecord } from '../../compute/local/host/home/records.ts';
import { TenantDirectories } from '../../compute/local/host/home/tenant-directories.ts';
import { ensureServerBuild } from '../../compute/local/host/postgres/extended-build.ts';
import type { DataOwner } from '../../db/restored.ts';
import { errorText } from '../../lib/errors.ts';
import type { Moment } from '../../lib/moments.ts';
import { buildVerifier } from '../../lib/scram-verifier.ts';
import type { ScratchServer } from '../recovery/scratch-server.ts';
import type { Backup, Inventory, StoredHistory } from './backup.ts';
import { rebuild } from './rebuild.ts';
import type { RestoredData } from './report.ts';
import type { Restoring } from './restoring.ts';

export type OwnerOfData = Omit<DataOwner, 'adminSecret' | 'isListed'>;

export interface Destination {
  /** The branch in the backup, where that differs. */
  readonly sourceId?: string;
  /** Puts complete data into its place, if it is still wanted there. */
  readonly publish?: (receipt: BranchReceipt, put: () => Promise<void>) => Promise<void>;
}

export async function restoreData(
  restoring: Restoring,
  owner: OwnerOfData,
  adminSecret: string,
  { sourceId = owner.id, publish = (_, put) => put() }: Destination = {},
): Promise<RestoredData> {
  const { layout, config } = restoring;
  const { projectId, projectName, id, name, tenantUid, pgVersion } = owner;
  const home = layout.branch(projectId, id);
  const facts = { projectId, projectName, id, name };
  const there = await readBranchRecord(home);
  if (there) {
    await publish(there.receipt, async () => undefined);
    return { ...facts, lsn: null, lastCommitAt: null, until: null, seconds: 0, lost: null, problems: [] };
  }
  const startedAt = performance.now();
  const tenants = new TenantDirectories(layout, config.uids);
  await tenants.check({ projectId, tenantUid });
  await tenants.ensureProject({ projectId, tenantUid });
  const { build } = await ensureServerBuild(pgVersion, config, layout, restoring.options.say);
  const server = { build, layout, uid: tenantUid };
  // A snapshot holds one moment, whatever moment everything else is restored to.
  const moment = owner.isSnapshot ? null : restoring.options.moment;
  const histories = historiesOf(restoring.inventory, sourceId);
  const { rebuilt, history, directory } = await rebuildNewest(restoring.backup, histories, {
    moment,
    makeDirectory: async () => {
      const made = await makeUnfinished(layout.branches(projectId), id);
      if (tenantUid !== null) await tenants.ensure(made, tenantUid);
      return made;
    },
    server,
    inspect: (running) => replaceSecret(running, adminSecret),
  });
  const durationMs = Math.round(performance.now() - startedAt);
  const bytes = history.document.bases.find((base) => base.name === rebuilt.base)?.bytes ?? 0;
  const receipt = { method: 'copy', lsn: rebuilt.lsn, durationMs, bytes, bytesShared: 0 } as const;
  const record = { pgVersion, receipt, past: newPast(null, null) };
  // Before anything is held for the publishing, which is then quick.
  await syncTree(directory);
  await publish(receipt, () => publishData({ home, directory, record, firstSecret: null, tenantUid })).catch(
    async (error: unknown) => {
      await rm(directory, { recursive: true, force: true });
      throw error;
    },
  );
  const until = moment === null ? (history.document.until?.at ?? null) : null;
  const { lsn, lastCommitAt, lost, problems } = rebuilt;
  return { ...facts, lsn, lastCommitAt, until, seconds: durationMs / 1_000, lost, problems };
}

function historiesOf({ tenants }: Inventory, branchId: string): StoredHistory[] {
  const own = tenants.filter(({ document }) => document.branchId === branchId);
  if (own.length === 0) throw new Error('the store has no data of it');
  return own;
}

interface RebuildPlan {
  readonly moment: Moment | null;
  readonly makeDirectory: () => Promise<string>;
  readonly server: Parameters<typeof rebuild>[0]['server'];
  readonly inspect: (server: ScratchServer) => Promise<void>;
}

/** The newest history that has the moment: a branch that was reset has one for the data before and one for after. */
async function rebuildNewest(backup: Backup, histories: readonly StoredHistory[], plan: RebuildPlan) {
  const refusals: string[] = [];
  for (const history of histories) {
    const directory = await plan.makeDirectory();
    try {
      const { moment, server, inspect } = plan;
      const rebuilt = await rebuild({ backup, history, moment, directory, server, inspect });
      return { rebuilt, history, directory };
    } catch (error) {
      if ((error as Error).name !== 'NoSuchMomentError') throw error;
      refusals.push(errorText(error));
    }
  }
  throw new Error(refusals.join('; '));
}

/** The base image may be older than the project's secret for Catnap's login, or still have its template's. */
async function replaceSecret(server: ScratchServer, adminSecret: string): Promise<void> {
  const sql = server.connect(adminRole, adminDatabase);
  try {
    const verifier = buildVerifier(adminSecret, randomBytes(16), adminScramIterations);
    await sql.unsafe(`ALTER ROLE ${adminRole} PASSWORD '${verifier}'`);
  } finally {
    await sql.end({ timeout: 5 });
  }
}
