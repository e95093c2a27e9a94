/**
 * The host's part of copying a running server's directory. The driver holds the backup open by SQL and calls twice:
 * `begin` copies everything but the WAL, `finish` adds the WAL and the backup label. In between nothing is locked, and
 * nothing is visible: the copy is in a directory that only the parent can enter. A copy left by a worker that died is
 * removed by the next attempt, or with the branch or endpoint that it was for.
 */

import { randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import type { KeyedLock } from '../../../../lib/keyed-lock.ts';
import { lsnText } from '../../../../lib/moments.ts';
import { type BranchReceipt, StaleGenerationError } from '../../../interface/driver.ts';
import type { BackupEnd, LiveClone } from '../../channel/host-calls.ts';
import { type CopyResult, syncTree } from '../copy/tree.ts';
import { dataDirectory, type Layout } from '../home/layout.ts';
import { branchLock, endpointLock } from '../home/lock-names.ts';
import { readBranchRecord, readEndpointRecord, type SourcePast } from '../home/records.ts';
import { dataHome } from '../home/server-data.ts';
import { discard, type TenantDirectories } from '../home/tenant-directories.ts';
import { findHolder } from '../postgres/holder.ts';
import { parseSegment, segmentBytes } from '../postgres/wal-segments.ts';
import { addBackupFiles, copyRunning, requireBackupEnd } from './backup-files.ts';
import { receiptOf } from './clone.ts';
import { makeUnfinished, newPast, publishData } from './create.ts';

export interface LiveCloneParts {
  readonly layout: Layout;
  readonly tenants: TenantDirectories;
  readonly locks: KeyedLock;
}

interface Pending {
  readonly clone: LiveClone;
  readonly directory: string;
  readonly copied: CopyResult;
  readonly startedAt: number;
  /** Pid of the source's server. */
  readonly pid: number;
}

export class LiveClones {
  readonly #parts: LiveCloneParts;
  readonly #pending = new Map<string, Pending>();

  constructor(parts: LiveCloneParts) {
    this.#parts = parts;
  }

  /** Returns the token by which `finish` and `abandon` identify the copy. */
  async begin(clone: LiveClone): Promise<string> {
    const { layout, tenants } = this.#parts;
    await tenants.check(clone);
    return this.#locked(clone, async () => {
      await this.#requireFree(clone);
      const startedAt = performance.now();
      const pid = await this.#requireRunning(clone);
      await tenants.ensureProject(clone);
      this.#forget(clone);
      const directory = clone.replica
        ? await makeUnfinished(layout.endpoint(clone.projectId, clone.replica.endpointId), 'replica')
        : await makeUnfinished(layout.branches(clone.projectId), clone.branchId);
      try {
        const copied = await copyRunning(this.#paths(clone, directory));
        // Writing out now shortens the wait after the backup; `publishData` makes sure that everything is on disk.
        if (copied.bytesCopied > 0) void syncTree(directory).catch(() => undefined);
        const token = randomBytes(16).toString('hex');
        this.#pending.set(token, { clone, directory, copied, startedAt, pid });
        return token;
      } catch (error) {
        await rm(directory, { recursive: true, force: true });
        throw error;
      }
    });
  }

  async finish(token: string, end: BackupEnd): Promise<BranchReceipt> {
    requireBackupEnd(end);
    const pending = this.#pending.get(token);
    if (!pending) throw new Error('the copy is gone: another attempt has taken its place');
    const { clone, directory, copied, startedAt } = pending;
    return this.#locked(clone, async () => {
      // Checked again: another attempt may have begun while this one waited for the lock.
      if (!this.#pending.delete(token)) throw new Error('the copy is gone: another attempt has taken its place');
      try {
        if ((await this.#requireRunning(clone)) !== pending.pid)
          throw new Error('the server was restarted during the copy');
        const signal = clone.replica ? 'standby' : 'recovery';
        const { wal, ...added } = await addBackupFiles(this.#paths(clone, directory), end, signal);
        const receipt = receiptOf([copied, wal], { lsn: end.lsn, started: startedAt });
        const written = receipt.bytesShared < receipt.bytes ? null : added.written;
        const past = newPast(null, await this.#sourcePast(clone, end));
        const record = { pgVersion: clone.pgVersion, receipt, past };
        const home = this.#home(clone);
        if (clone.replica) await discard(home, this.#parts.layout);
        await publishData({ home, directory, record, firstSecret: null, tenantUid: clone.tenantUid, written });
        return receipt;
      } catch (error) {
        await rm(directory, { recursive: true, force: true });
        throw error;
      }
    });
  }

  async abandon(token: string): Promise<void> {
    const pending = this.#pending.get(token);
    if (pending && this.#pending.delete(token)) await rm(pending.directory, { recursive: true, force: true });
  }

  #locked<T>(clone: LiveClone, work: () => Promise<T>): Promise<T> {
    const { locks } = this.#parts;
    const source = { ...clone, branchId: clone.sourceId };
    const target = clone.replica ? endpointLock({ ...clone, ...clone.replica }) : branchLock(clone);
    return locks.exclusive(target, () => locks.shared(branchLock(source), work));
  }

  #home(clone: LiveClone): string {
    const replica = clone.replica && { endpointId: clone.replica.endpointId, readOnly: true };
    return dataHome(this.#parts.layout, { ...clone, ...replica });
  }

  /** A replica's old data is replaced, so no server may run on it and no newer call may have arrived. */
  async #requireFree(clone: LiveClone): Promise<void> {
    const { layout } = this.#parts;
    const { replica, branchId } = clone;
    if (replica === null) {
      if (await readBranchRecord(this.#home(clone))) throw new Error(`branch ${branchId} already has data`);
      return;
    }
    const { endpointId, generation } = replica;
    const record = await readEndpointRecord(layout.endpoint(clone.projectId, endpointId));
    if (!record) throw new Error(`replica ${endpointId} was not claimed`);
    if (generation < record.generation) throw new StaleGenerationError(endpointId, generation, record.generation);
    if (await findHolder(dataDirectory(this.#home(clone)), clone.tenantUid)) {
      throw new Error(`replica ${endpointId} is not asleep`);
    }
  }

  async #requireRunning(clone: LiveClone): Promise<number> {
    const { layout } = this.#parts;
    const directory = layout.branch(clone.projectId, clone.sourceId);
    const record = await readBranchRecord(directory);
    if (record?.pgVersion !== clone.pgVersion) throw new Error(`branch ${clone.sourceId} has no data of this version`);
    const holder = await findHolder(dataDirectory(directory), clone.tenantUid);
    if (!holder?.ready) throw new Error(`the server of branch ${clone.sourceId} is not running any more`);
    return holder.pid;
  }

  #paths(clone: LiveClone, directory: string) {
    const source = dataDirectory(this.#parts.layout.branch(clone.projectId, clone.sourceId));
    return { source, target: dataDirectory(directory), owner: clone.tenantUid, keepsLog: clone.replica === null };
  }

  /** The end of a backup fills its segment, so the copy has all of the source's log up to there. */
  async #sourcePast({ projectId, sourceId, replica }: LiveClone, end: BackupEnd): Promise<SourcePast | null> {
    const past = (await readBranchRecord(this.#parts.layout.branch(projectId, sourceId)))?.past;
    if (replica !== null || past === undefined) return null;
    const { timeline, at } = parseSegment(end.lastSegment);
    const until = lsnText(BigInt(at + 1) * segmentBytes);
    return { branchId: sourceId, historyId: past.historyId, timeline, until };
  }

  /** Forgets an earlier attempt whose worker is gone; `makeUnfinished` removes its directory. */
  #forget(clone: LiveClone): void {
    for (const [token, pending] of this.#pending) {
      if (this.#home(pending.clone) === this.#home(clone)) this.#pending.delete(token);
    }
  }
}
