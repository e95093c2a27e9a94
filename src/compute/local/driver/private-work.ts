/** The driver's part of work in a copy before anything may serve it: leaving its source's data, or its publishers. */
import { delay } from '../../../lib/clock.ts';
import type { DetachSpec, EmptySpec, KeptFiles } from '../../interface/driver.ts';
import { adminDatabase } from '../../interface/own-logins.ts';
import { adminLogin, isNotReady, type Session, shielded, withSession } from '../../server/admin-session.ts';
import { emptyTables, listFiles } from '../../server/empty-tables.ts';
import { detachSubscriptions } from '../../server/logical-replication.ts';
import type { HostCalls, PrivateServer } from '../channel/host-calls.ts';

/** Allows for recovery of a copy of a busy source, and for a statement over all tables of a large schema. */
const startMsMax = 600_000;
const statementMs = 1_800_000;

export async function detachBranch(host: HostCalls, spec: DetachSpec): Promise<void> {
  await inPrivate(host, spec, 'detach', async (enter) => {
    await enter(adminDatabase, detachSubscriptions);
    return null;
  });
}

/** Two rounds: the second removes the WAL that the first one wrote, and the WAL from before it. */
export async function emptyBranch(host: HostCalls, spec: EmptySpec): Promise<void> {
  await inPrivate(host, spec, 'empty', async (enter) => {
    await enter(adminDatabase, detachSubscriptions);
    await emptyTables(enter);
    return null;
  });
  await inPrivate(host, spec, 'empty', listFiles);
}

async function inPrivate(
  host: HostCalls,
  spec: EmptySpec,
  purpose: PrivateServer['purpose'],
  work: (enter: Enter) => Promise<KeptFiles | null>,
): Promise<void> {
  const { projectId, tenantUid, branchId, pgVersion } = spec;
  const ref = { projectId, tenantUid, branchId, pgVersion, purpose };
  const socketPath = await host.openPrivateServer(ref);
  if (socketPath === null) return;
  const login = adminLogin(spec.adminSecret);
  const address = { kind: 'unix', path: socketPath } as const;
  const enter: Enter = async (database, inside) => {
    const loginTo = (sql: Session) => shielded(sql, { ...login, database });
    const into = database === adminDatabase ? login : await withSession(address, login, loginTo);
    return withSession(address, into, inside, { statementMs });
  };
  await untilReady(enter);
  await host.closePrivateServer(ref, await work(enter));
}

type Enter = <T>(database: string, work: (sql: Session) => Promise<T>) => Promise<T>;

async function untilReady(enter: Enter): Promise<void> {
  const giveUpAt = Date.now() + startMsMax;
  for (;;) {
    try {
      await enter(adminDatabase, (sql) => sql`SELECT 1`);
      return;
    } catch (error) {
      if (!isNotReady(error) || Date.now() > giveUpAt) throw error;
      await delay(10);
    }
  }
}
