/** Creates a branch's directory: a clone, its record, and the template's secret that its server still has. */
import { randomBytes } from 'node:crypto';
import { chmodSync, chownSync, existsSync, mkdtempSync, readdirSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { delay } from '../../../../lib/clock.ts';
import type { KeyedLock } from '../../../../lib/keyed-lock.ts';
import { lsnText } from '../../../../lib/moments.ts';
import type { BranchReceipt, BranchSpec } from '../../../interface/driver.ts';
import { renameDurably, syncChanges, syncTree } from '../copy/tree.ts';
import { dataDirectory, type Layout } from '../home/layout.ts';
import { branchLock } from '../home/lock-names.ts';
import {
  type BranchPast,
  type BranchRecord,
  readBranchRecord,
  readFirstSecret,
  recordFiles,
  type SourcePast,
  writeBranchRecord,
  writeFirstSecret,
} from '../home/records.ts';
import type { TenantDirectories } from '../home/tenant-directories.ts';
import { readControlFile } from '../postgres/control-file.ts';
import { findPostmaster, stopPostmaster } from '../postgres/postmaster.ts';
import { isWorkedIn } from '../postgres/process-info.ts';
import type { Template } from '../postgres/template.ts';
import { cloneCluster } from './clone.ts';
import type { Spares } from './spares.ts';

export interface BranchParts {
  readonly template: Template;
  readonly layout: Layout;
  readonly tenants: TenantDirectories;
  readonly locks: KeyedLock;
  readonly spares: Spares;
}

interface Source {
  readonly dataDirectory: string;
  readonly sourceOwner: number | null;
  readonly firstSecret: string | null;
  /** Null for the template. */
  readonly past: BranchPast | null;
}

/** Longer than that, something works in the data that nobody told to end. */
const outliveMsMax = 2_000;
const lookMs = 20;

/** Copies the template, or a branch that is asleep and is kept asleep. */
export async function createBranchDirectory(parts: BranchParts, spec: BranchSpec): Promise<BranchReceipt> {
  const { layout, locks, tenants } = parts;
  await tenants.check(spec);
  return locks.exclusive(branchLock(spec), async () => {
    const existing = await readBranchRecord(layout.branch(spec.projectId, spec.branchId));
    if (existing) return existing.receipt;
    if (spec.source.kind === 'template') return makeBranch(parts, spec);
    const source = { ...spec, branchId: spec.source.branchId };
    const directory = layout.branch(source.projectId, source.branchId);
    // Before the second lock: that one is taken only for a branch that exists, so no two calls can wait for each other.
    if (!(await readBranchRecord(directory))) throw new Error(`branch ${source.branchId} has no data`);
    return locks.shared(branchLock(source), async () => {
      if (!(await isAsleep(dataDirectory(directory), spec.tenantUid))) {
        throw new Error(`branch ${source.branchId} is not asleep`);
      }
      return makeBranch(parts, spec);
    });
  });
}

/** The processes of a server that has just ended, or was killed, may outlive their postmaster by a moment. */
async function isAsleep(data: string, tenantUid: number | null): Promise<boolean> {
  if ((await findPostmaster(data, tenantUid)) !== null) return false;
  const giveUpAt = performance.now() + outliveMsMax;
  while (await isWorkedIn(data)) {
    if (performance.now() > giveUpAt) return false;
    await delay(lookMs);
  }
  return true;
}

async function makeBranch(parts: BranchParts, spec: BranchSpec): Promise<BranchReceipt> {
  const { layout, tenants } = parts;
  const { tenantUid } = spec;
  const source = await findSource(parts, spec);
  await tenants.ensureProject(spec);
  const unfinished = await makeUnfinished(layout.branches(spec.projectId), spec.branchId);
  try {
    const target = dataDirectory(unfinished);
    const spare = spec.source.kind === 'template' ? await parts.spares.take(parts.template, target, tenantUid) : null;
    const { dataDirectory: from, sourceOwner } = source;
    const clone = { source: from, target, owner: tenantUid, sourceOwner, keepsLog: true };
    const receipt = spare ?? (await cloneCluster(clone));
    const past = spec.source.kind === 'template' ? newPast(parts.template.build, null) : await pastOf(spec, source);
    const record = { pgVersion: spec.pgVersion, receipt, past };
    const home = layout.branch(spec.projectId, spec.branchId);
    const written = spare === null && receipt.bytesShared < receipt.bytes ? null : [];
    await publishData({ home, directory: unfinished, record, firstSecret: source.firstSecret, tenantUid, written });
    return receipt;
  } catch (error) {
    await rm(unfinished, { recursive: true, force: true });
    throw error;
  }
}

/** A directory to build a branch in: 0700 and owned by the parent until it is complete, so no other uid can enter. */
export async function makeUnfinished(folder: string, name: string): Promise<string> {
  await removeUnfinished(folder, name);
  return mkdtempSync(join(folder, `.${name}-`));
}

/** Moves complete data, with its record, to its final directory by one rename. */
export async function publishData(making: {
  readonly directory: string;
  readonly home: string;
  readonly record: BranchRecord;
  readonly firstSecret: string | null;
  readonly tenantUid: number | null;
  /**
   * Files of the data that were written, if everything else was on disk before it was moved here, or shares the blocks
   * of its source, which a clone has on disk: `syncChanges` is then enough. Null, if not given, for any other data.
   */
  readonly written?: readonly string[] | null;
}): Promise<void> {
  const { directory, home, record, firstSecret, tenantUid, written = null } = making;
  await writeBranchRecord(directory, record);
  if (firstSecret !== null) await writeFirstSecret(directory, firstSecret);
  if (tenantUid !== null) {
    chownSync(directory, 0, tenantUid);
    chmodSync(directory, 0o710);
  }
  // Everything must be on disk before the branch is reported as made.
  if (written === null) await syncTree(directory);
  else await syncChanges(directory, [...written, ...recordFiles(directory)]);
  await renameDurably(directory, home);
}

async function findSource({ template, layout }: BranchParts, spec: BranchSpec): Promise<Source> {
  if (spec.source.kind === 'history') throw new Error('BUG: a moment of the past is recovered, not copied');
  if (spec.source.kind === 'template') {
    return { dataDirectory: template.dataDirectory, sourceOwner: null, firstSecret: template.secret, past: null };
  }
  const home = layout.branch(spec.projectId, spec.source.branchId);
  const record = await readBranchRecord(home);
  if (!record) throw new Error(`branch ${spec.source.branchId} has no data`);
  if (record.pgVersion !== spec.pgVersion) {
    throw new Error(`branch ${spec.source.branchId} is of Postgres ${record.pgVersion}, not ${spec.pgVersion}`);
  }
  return {
    dataDirectory: dataDirectory(home),
    sourceOwner: spec.tenantUid,
    firstSecret: await readFirstSecret(home),
    past: record.past ?? null,
  };
}

/**
 * What a copy of a branch that is asleep continues. That of one that no server has run on since it was made, such as a
 * snapshot, continues the same as that one did, so that nothing has to be kept of the latter.
 */
async function pastOf({ source }: BranchSpec, { dataDirectory: data, past }: Source): Promise<BranchPast> {
  if (source.kind !== 'branch' || past === null) return newPast(null, null);
  if (!existsSync(join(data, 'postmaster.opts'))) return newPast(past.template, past.parent ?? null);
  const { timeline, redo } = await readControlFile(data);
  const { historyId } = past;
  return newPast(null, { branchId: source.branchId, historyId, timeline, until: lsnText(redo) });
}

/** Removes what an earlier attempt, cut off by a kill of Catnap, left behind. */
export async function removeUnfinished(folder: string, branchId: string): Promise<void> {
  const found = existsSync(folder) ? readdirSync(folder) : [];
  const names = found.filter((name) => name.startsWith(`.${branchId}-`));
  for (const name of names) {
    // A recovery runs a server there.
    await stopPostmaster(dataDirectory(join(folder, name)), null, { fastMs: 0, immediateMs: 10_000 });
    await rm(join(folder, name), { recursive: true, force: true });
  }
}

export const newPast = (template: string | null, source: SourcePast | null): BranchPast => ({
  historyId: randomBytes(8).toString('hex'),
  madeAt: new Date().toISOString(),
  template,
  ...(source !== null && { parent: source }),
});
