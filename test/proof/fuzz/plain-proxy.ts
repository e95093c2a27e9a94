/** A proxy in this process in front of the tests' own Postgres, which is also the plain server to compare with. */
import { query } from '../../helpers/postgres-messages.ts';
import { PostgresProxies } from '../../helpers/proxy.ts';
import { Random } from '../random.ts';
import { createProgress, Findings } from './findings.ts';
import { applicationName, compareSessions, leaveSession, mixSessions } from './sessions.ts';
import { tryOpening } from './startup.ts';
import { type Target, WireClient } from './wire-client.ts';

export interface PostgresFuzzOptions {
  readonly seed: number;
  readonly rounds: number;
  readonly minutes: number;
}

export interface PostgresFuzzResult {
  readonly counts: Readonly<Record<string, number>>;
  readonly findings: readonly string[];
  /** Server connections that were still in a transaction after all clients had left. */
  readonly leftTransactions: number;
}

/** Clients that are connected at the same time. */
const mixed = 8;

export async function fuzzSessions({ seed, rounds, minutes }: PostgresFuzzOptions): Promise<PostgresFuzzResult> {
  const proxies = new PostgresProxies();
  await proxies.prepare();
  try {
    await proxies.direct`create table if not exists fuzz_rows (a text)`;
    const proxy = await proxies.start();
    const { user, password, database } = proxies.role;
    const parameters = { application_name: applicationName };
    const plain: Target = { address: { path: proxies.system.path }, user, password, database, parameters };
    const at = (endpoint: string): Target => ({
      address: { host: '127.0.0.1', port: proxy.port },
      user,
      database,
      password: `endpoint=${endpoint};${password}`,
      parameters,
    });
    const findings = new Findings();
    const counts = { compared: 0, mixed: 0, left: 0, openings: 0, neighbour: 0 };
    const random = new Random(seed);
    const report = createProgress('fuzz postgres');
    const endsAt = performance.now() + minutes * 60_000;
    for (let round = 0; round < rounds && performance.now() < endsAt; round++) {
      await compareSessions(random, plain, at('ep-a-pooler'), findings, 'pooled');
      if (round % 4 === 0) await compareSessions(random, plain, at('ep-a'), findings, 'direct');
      if (round % 8 === 0) await mixSessions(random, at('ep-a-pooler'), mixed, findings);
      if (round % 4 === 0) await leaveSession(random, at('ep-a-pooler'), findings);
      for (let left = 4; left > 0; left--) await tryOpening(random, at('ep-a'), findings);
      await beNeighbour(at('ep-a-pooler'), findings);
      counts.compared += round % 4 === 0 ? 2 : 1;
      counts.mixed += round % 8 === 0 ? mixed : 0;
      counts.left += round % 4 === 0 ? 1 : 0;
      counts.openings += 4;
      counts.neighbour += 1;
      report(() => `${round} of ${rounds} rounds, ${findings.count} findings, seed ${seed}`);
    }
    const [row] = await proxies.direct`
      select count(*)::int as open from pg_stat_activity
       where application_name = ${applicationName} and state like 'idle in transaction%'`;
    await proxies.direct`drop table fuzz_rows`;
    return { counts, findings: findings.list(), leftTransactions: row?.open ?? 0 };
  } finally {
    await proxies.dispose();
  }
}

/** A client that does nothing wrong gets its answers, and a session as it is after a login. */
async function beNeighbour(target: Target, findings: Findings): Promise<void> {
  const sql = `select current_setting('work_mem') || current_setting('statement_timeout') ||
    (select count(*) from pg_cursors) || coalesce(pg_current_xact_id_if_assigned()::text, ' none')`;
  try {
    const client = await WireClient.logIn(target);
    await client.send([query(sql)]);
    await client.until(({ received }) => received.some(({ type }) => type === 'Z'));
    const answer = client.received
      .find(({ type }) => type === 'D')
      ?.body.subarray(6)
      .toString();
    if (answer !== '4MB00 none') findings.add('a neighbour finds a session that is not clean', String(answer));
    client.destroy();
  } catch (error) {
    findings.add(`a neighbour: ${error}`, '');
  }
}
