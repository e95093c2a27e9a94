/** The driver's part of recovering a branch: waits for the private server, and reads what its data holds. */
import { delay } from '../../../lib/clock.ts';
import type { BranchCopy, BranchSource, BranchSpec, SourceState } from '../../interface/driver.ts';
import { adminLogin, isNotReady, isRefused, type Session, withSession } from '../../server/admin-session.ts';
import { readCatalog } from '../../server/configure.ts';
import { keepLogForHistory, readLogEnd, releaseLog } from '../../server/history.ts';
import { readSize } from '../../server/work.ts';
import type { HostCalls, Recovery } from '../channel/host-calls.ts';
import { copyWholeLog } from './history.ts';

const pollMs = 20;
/** Nothing was committed after the moment, so recovery to the end of the log gives it. */
const endedBefore = /recovery ended before configured recovery target was reached/;

export async function recoverBranch(
  host: HostCalls,
  spec: BranchSpec,
  source: BranchSource & { readonly kind: 'history' },
): Promise<BranchCopy> {
  const { projectId, tenantUid, branchId, pgVersion } = spec;
  const { branchId: sourceId, moment, adminSecret } = source;
  await copyWholeLog(host, { projectId, tenantUid, branchId: sourceId });
  const recovery = await host.beginRecovery({ projectId, tenantUid, branchId, pgVersion, sourceId, moment });
  if (recovery === null) return { receipt: await host.createBranch({ ...spec, source: head(sourceId) }), source: null };
  try {
    const found = await readRecovered(host, recovery, adminSecret);
    const { lsn, hasFirstSecret, state } = found;
    return { receipt: await host.finishRecovery(recovery.token, { lsn, hasFirstSecret }), source: state };
  } catch (error) {
    await host.abandonRecovery(recovery.token).catch(() => undefined);
    throw error;
  }
}

/** The branch exists already: whatever it would be made from, its receipt is returned. */
const head = (branchId: BranchSpec['branchId']): BranchSource => ({ kind: 'branch', branchId });

interface Recovered {
  readonly lsn: string | null;
  readonly hasFirstSecret: boolean;
  readonly state: SourceState;
}

async function readRecovered(host: HostCalls, recovery: Recovery, adminSecret: string): Promise<Recovered> {
  const secrets = [adminSecret, ...(recovery.firstSecret === null ? [] : [recovery.firstSecret])];
  for (let isToEnd = false; ; ) {
    const refusals: string[] = [];
    for (const secret of secrets) {
      const found = await readOver(recovery.socketPath, secret);
      if (found === 'refused') refusals.push(secret);
      else if (found !== null) return { ...found, hasFirstSecret: secret !== adminSecret };
    }
    if (refusals.length === secrets.length) throw new Error("the recovered server refuses Catnap's login");
    const words = await host.whyRecoveryEnded(recovery.token);
    if (words !== null) {
      if (isToEnd || !endedBefore.test(words)) throw new Error(`recovery failed: ${words}`);
      isToEnd = true;
      await host.recoverToEnd(recovery.token);
    }
    await delay(pollMs);
  }
}

/** Null while the server does not accept logins. */
async function readOver(socketPath: string, secret: string) {
  try {
    return await withSession({ kind: 'unix', path: socketPath }, adminLogin(secret), readState);
  } catch (error) {
    if (isRefused(error)) return 'refused';
    if (isNotReady(error)) return null;
    throw error;
  }
}

async function readState(sql: Session): Promise<Omit<Recovered, 'hasFirstSecret'>> {
  const [row] = await sql<{ lsn: string | null }[]>`SELECT pg_last_wal_replay_lsn()::text AS lsn`;
  const state = { catalog: await readCatalog(sql), bytes: await readSize(sql), isExact: true };
  // From its first start on, the branch keeps the log that its history does not have yet.
  await keepLogForHistory(sql);
  await releaseLog(sql, (await readLogEnd(sql)).lsn);
  return { lsn: row?.lsn ?? null, state };
}
