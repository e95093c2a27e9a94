/**
 * Recovers the data of a new branch from a history: a clone of a base image, the log up to the moment, and a private
 * server that replays it. The data is in an unfinished directory until the server has ended in order, so a kill
 * anywhere leaves nothing that could be mistaken for a branch.
 */
import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { chmod, chown, copyFile, lchown, mkdir, open, readFile, rm, stat, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { lsnBytes, lsnText } from '../../../../lib/moments.ts';
import { type BranchReceipt, NoSuchMomentError } from '../../../interface/driver.ts';
import type { Recovery, RecoverySpec } from '../../channel/host-calls.ts';
import { cloneCluster } from '../branches/clone.ts';
import { makeUnfinished, newPast, publishData, removeUnfinished } from '../branches/create.ts';
import { clearOldLog, type PrivateServerParts, startPrivateServer } from '../branches/private-server.ts';
import { requireRoom } from '../copy/room.ts';
import { dataDirectory } from '../home/layout.ts';
import { branchLock } from '../home/lock-names.ts';
import { readBranchRecord, type SourcePast } from '../home/records.ts';
import { discard } from '../home/tenant-directories.ts';
import { readControlFile } from '../postgres/control-file.ts';
import { findPostmaster, stopPostmaster } from '../postgres/postmaster.ts';
import { readEndedTimelines, timelineFilesIn } from '../postgres/timelines.ts';
import { segmentBytes } from '../postgres/wal-segments.ts';
import type { Histories } from './histories.ts';
import type { Kept } from './past.ts';
import { planRecovery, type RecoveryPlan } from './plan.ts';

interface Pending {
  readonly spec: RecoverySpec;
  /** The unfinished directory. */
  readonly directory: string;
  readonly socketPath: string;
  readonly receipt: BranchReceipt;
  readonly startedAt: number;
  readonly firstSecret: string | null;
  /** The history that it was recovered from. */
  readonly historyId: string;
}

const segmentSize = Number(segmentBytes);
const lastWordsBytes = 2_000;
const endedBefore = /recovery ended before configured recovery target was reached/;

export class Recoveries {
  readonly #parts: PrivateServerParts;
  readonly #histories: Histories;
  readonly #pending = new Map<string, Pending>();

  constructor(parts: PrivateServerParts, histories: Histories) {
    this.#parts = parts;
    this.#histories = histories;
  }

  async begin(spec: RecoverySpec): Promise<Recovery | null> {
    const { layout, tenants, locks } = this.#parts;
    await tenants.check(spec);
    return locks.exclusive(branchLock(spec), async () => {
      if (await readBranchRecord(layout.branch(spec.projectId, spec.branchId))) return null;
      for (const [token, { spec: earlier }] of this.#pending) {
        if (earlier.branchId === spec.branchId) this.#pending.delete(token);
      }
      const kept = await this.#histories.find({ ...spec, branchId: spec.sourceId });
      if (kept === null) throw new NoSuchMomentError(`branch ${spec.sourceId} has no data`);
      if (kept.record.pgVersion !== spec.pgVersion) throw new Error(`branch ${spec.sourceId} is of another version`);
      const plan = await this.#plan(spec, kept);
      await tenants.ensureProject(spec);
      return this.#histories.reading(kept.historyId, () => this.#build(spec, kept, plan));
    });
  }

  async #plan(spec: RecoverySpec, kept: Kept): Promise<RecoveryPlan> {
    const facts = await this.#histories.facts({ ...spec, branchId: spec.sourceId }, kept);
    if (facts === null) throw new NoSuchMomentError(`branch ${spec.sourceId} has no history yet`);
    return planRecovery(facts, spec.moment);
  }

  async #build(
    spec: RecoverySpec,
    { paths, historyId }: Kept,
    { base, segments, target }: RecoveryPlan,
  ): Promise<Recovery> {
    const startedAt = performance.now();
    const { layout } = this.#parts;
    const { tenantUid } = spec;
    const directory = await makeUnfinished(layout.branches(spec.projectId), spec.branchId);
    try {
      const data = dataDirectory(directory);
      const from = join(paths.bases, base.name);
      const source = dataDirectory(from);
      const receipt = await cloneCluster({ source, target: data, owner: tenantUid, sourceOwner: null });
      await placeLog(paths.log, join(data, 'pg_wal'), segments, tenantUid);
      await writeOwned(join(data, 'recovery.signal'), tenantUid);
      if (tenantUid !== null) {
        await chown(directory, 0, tenantUid);
        await chmod(directory, 0o710);
      }
      const firstSecret = await readFile(join(from, 'first-secret'), 'utf8').catch(() => null);
      const socketPath = await this.#startTo(spec, directory, target);
      const token = randomBytes(16).toString('hex');
      this.#pending.set(token, { spec, directory, socketPath, receipt, startedAt, firstSecret, historyId });
      return { token, socketPath, firstSecret };
    } catch (error) {
      await this.#discard(spec);
      throw error;
    }
  }

  /** A short recovery may be over, and have found no commit after the moment, before its start is. */
  async #startTo(spec: RecoverySpec, directory: string, target: RecoveryPlan['target']): Promise<string> {
    try {
      return await this.#start(spec, directory, target);
    } catch (error) {
      if (Object.keys(target).length === 0 || !endedBefore.test(await lastWords(directory))) throw error;
      return this.#start(spec, directory, {});
    }
  }

  #start(spec: RecoverySpec, directory: string, target: RecoveryPlan['target']): Promise<string> {
    const action = Object.keys(target).length > 0 && { recovery_target_action: 'promote' };
    // What a crash leaves of it is thrown away, and what becomes a branch is synced as a whole before (`publishData`).
    const settings = { fsync: 'off', ...target, ...action };
    const words = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    return startPrivateServer(this.#parts, { ...spec, home: directory, settings: 'recovery', arguments: words });
  }

  async whyEnded(token: string): Promise<string | null> {
    const { directory, spec } = this.#require(token);
    if (await findPostmaster(dataDirectory(directory), spec.tenantUid)) return null;
    return (await lastWords(directory)) || 'it ended without a word';
  }

  async toEnd(token: string): Promise<void> {
    const { spec, directory } = this.#require(token);
    await this.#start(spec, directory, {});
  }

  async finish(token: string, reached: { lsn: string | null; hasFirstSecret: boolean }): Promise<BranchReceipt> {
    const { spec, directory, receipt: copied, startedAt, firstSecret, historyId } = this.#require(token);
    const { layout, locks } = this.#parts;
    return locks.exclusive(branchLock(spec), async () => {
      // Checked again: another attempt may have begun while this one waited for the lock.
      if (!this.#pending.delete(token)) throw new Error('the recovery is gone: another attempt has taken its place');
      const data = dataDirectory(directory);
      await stopPostmaster(data, spec.tenantUid);
      const source = await sourcePast(data, spec.tenantUid, { branchId: spec.sourceId, historyId });
      await clearOldLog(data, source === null ? null : lsnBytes(source.until));
      await discard(layout.replicationDirectory(spec.branchId), layout);
      await rm(join(directory, 'private'), { recursive: true, force: true });
      // Left by the private server; without it, the data counts as never started.
      await rm(join(data, 'postmaster.opts'), { force: true });
      const receipt = { ...copied, lsn: reached.lsn, durationMs: Math.round(performance.now() - startedAt) };
      await publishData({
        directory,
        home: layout.branch(spec.projectId, spec.branchId),
        record: { pgVersion: spec.pgVersion, receipt, past: newPast(null, source) },
        firstSecret: reached.hasFirstSecret ? firstSecret : null,
        tenantUid: spec.tenantUid,
      });
      return receipt;
    });
  }

  async abandon(token: string): Promise<void> {
    const pending = this.#pending.get(token);
    if (pending && this.#pending.delete(token)) await this.#discard(pending.spec);
  }

  async #discard({ projectId, branchId }: RecoverySpec): Promise<void> {
    const { layout } = this.#parts;
    await removeUnfinished(layout.branches(projectId), branchId);
    await discard(layout.replicationDirectory(branchId), layout);
  }

  #require(token: string): Pending {
    const pending = this.#pending.get(token);
    if (!pending) throw new Error('the recovery is gone: another attempt has taken its place');
    return pending;
  }
}

/** The log of the recovered data parts from its source's where recovery ended. */
async function sourcePast(
  data: string,
  owner: number | null,
  of: Pick<SourcePast, 'branchId' | 'historyId'>,
): Promise<SourcePast | null> {
  const { timeline } = await readControlFile(data);
  const last = (await readEndedTimelines(join(data, 'pg_wal'), timeline, owner)).at(-1);
  return last === undefined ? null : { ...of, timeline: last.timeline, until: lsnText(last.end) };
}

async function lastWords(directory: string): Promise<string> {
  const log = await readFile(join(directory, 'private', 'server.log'), 'utf8').catch(() => '');
  return log.slice(-lastWordsBytes).trim();
}

/** Over the segments that came with the base image: those of the history are complete, or longer. */
async function placeLog(from: string, to: string, names: readonly string[], owner: number | null): Promise<void> {
  const sizes = await Promise.all(names.map((name) => stat(join(from, name)).catch(() => null)));
  const missing = names.find((_, index) => sizes[index] === null);
  // The last one may be a segment that nothing was written to yet.
  const wanted = missing === names.at(-1) ? names.slice(0, -1) : names;
  if (missing !== undefined && wanted === names)
    throw new NoSuchMomentError(`the log segment ${missing} is missing in the history`);
  await requireRoom(to, 0);
  for (const name of wanted) {
    const target = join(to, name);
    await rm(target, { force: true });
    await copyFile(join(from, name), target, constants.COPYFILE_FICLONE);
    // A server reads whole segments; what was not written yet is zeros.
    await truncate(target, segmentSize);
    await chmod(target, 0o600);
    if (owner !== null) await lchown(target, owner, owner);
  }
  for (const name of await timelineFilesIn(from)) {
    await copyFile(join(from, name), join(to, name));
    await chmod(join(to, name), 0o600);
    if (owner !== null) await lchown(join(to, name), owner, owner);
  }
  await mkdir(join(to, 'archive_status'), { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
  });
  if (owner !== null) await lchown(join(to, 'archive_status'), owner, owner);
}

async function writeOwned(path: string, owner: number | null): Promise<void> {
  await (await open(path, 'wx', 0o600)).close();
  if (owner !== null) await lchown(path, owner, owner);
}
