/** The driver's part of keeping a history: questions to the running server, and the backup that a base image needs. */
import type { BackgroundWork } from '../../../lib/background-work.ts';
import type { BranchHistory } from '../../../lib/model.ts';
import { lsnBytes } from '../../../lib/moments.ts';
import type { BranchRef, HistoryPolicy } from '../../interface/driver.ts';
import { historySlot } from '../../interface/own-logins.ts';
import { adminLogin, isNotReady, type Session, withSession } from '../../server/admin-session.ts';
import { keepLogForHistory, readLogEnd, releaseLog, writeCommit } from '../../server/history.ts';
import { dropSlot } from '../../server/replication.ts';
import type { HostCalls } from '../channel/host-calls.ts';
import { beginBackup, checkpointMsMax, endBackup } from './live-clone.ts';
import { addressOf } from './observation.ts';

export interface HistoryKeeper {
  readonly host: HostCalls;
  /** Base images of running servers, by branch. */
  readonly bases: BackgroundWork;
}

/** A base image that takes long is made behind the caller's back: log goes on being copied by later calls. */
export async function keepHistory(
  { host, bases }: HistoryKeeper,
  ref: BranchRef,
  policy: HistoryPolicy,
): Promise<BranchHistory | null> {
  if (policy.retentionSeconds > 0) await bringInSource(host, ref);
  const turn = await host.turnHistory(ref, policy);
  if (turn?.keepsLog) await onServer(host, ref, (sql) => dropSlot(sql, historySlot));
  if (!turn?.wantsLog) return turn?.history ?? null;
  const wasHelped = await onServer(host, ref, (sql) => copyLog(host, ref, sql));
  if (!wasHelped) return turn.history;
  const makeBaseOfServer = async () => {
    // Another caller's base image may have been finished since this caller's turn.
    if (!(await host.turnHistory(ref, policy))?.wantsBase) return;
    await onServer(host, ref, (sql) => makeBase(host, ref, sql));
  };
  if (turn.wantsBase) await bases.run(ref.branchId, makeBaseOfServer);
  return (await host.turnHistory(ref, policy))?.history ?? null;
}

/** A history that has not begun continues that of the branch that it was copied from. */
async function bringInSource(host: HostCalls, ref: BranchRef): Promise<void> {
  const branchId = await host.historyWaitsFor(ref);
  if (branchId !== null) await copyWholeLog(host, { ...ref, branchId });
}

/** Copies all that is committed by now, with a commit after it, for a recovery to any moment until now. */
export async function copyWholeLog(host: HostCalls, ref: BranchRef): Promise<void> {
  await bringInSource(host, ref);
  await onServer(host, ref, async (sql) => {
    await writeCommit(sql);
    await copyLog(host, ref, sql);
  });
}

/** False when no server runs, or it went away. */
async function onServer(host: HostCalls, ref: BranchRef, work: (sql: Session) => Promise<void>): Promise<boolean> {
  const server = await host.findServer(ref);
  // A server with the template's secret gets its own first; the next turn finds it.
  if (!server?.process?.ready || server.firstSecret !== null) return false;
  try {
    await withSession(addressOf(server), adminLogin(server.adminSecret), work, { statementMs: checkpointMsMax });
    return true;
  } catch (error) {
    if (isNotReady(error)) return false;
    throw error;
  }
}

async function copyLog(host: HostCalls, ref: BranchRef, sql: Session): Promise<void> {
  await keepLogForHistory(sql);
  const end = await readLogEnd(sql);
  for (let reached = '0/0'; lsnBytes(reached) < lsnBytes(end.lsn); ) {
    reached = (await host.copyLog(ref, end)) ?? end.lsn;
    await releaseLog(sql, reached);
  }
}

async function makeBase(host: HostCalls, ref: BranchRef, sql: Session): Promise<void> {
  await beginBackup(sql);
  const token = await host.beginBase(ref);
  try {
    const backup = await endBackup(sql);
    await host.finishBase(ref, token, { ...backup, ...(await readLogEnd(sql)), lsn: backup.lsn });
  } catch (error) {
    await host.abandonBase(ref, token).catch(() => undefined);
    throw error;
  }
  // The backup's own slot keeps its log until the session ends.
  await copyLog(host, ref, sql);
}
