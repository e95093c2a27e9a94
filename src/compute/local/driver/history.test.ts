/** History on real servers: any recorded moment gives exactly the rows that were acknowledged before it. */
import { readdir } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type LocalSubject, makeLocalSubject } from '../../../../test/helpers/local-subject.ts';
import { newBranchId, newEndpointId } from '../../../lib/ids.ts';
import type { Moment } from '../../../lib/moments.ts';
import { Bench, ownerAndDatabase } from '../../contract/bench.ts';
import type { ComputeObservation } from '../../interface/driver.ts';
import { NoSuchMomentError } from '../../interface/driver.ts';

const policy = { retentionSeconds: 86_400 };

describe.each([17, 18])('the history of a branch on Postgres %d', (pgVersion) => {
  let subject: LocalSubject;
  beforeAll(async () => {
    subject = await makeLocalSubject(pgVersion);
  });
  afterAll(() => subject.close());

  /** Returns the server of a new branch that holds the state of that moment. */
  async function at(b: Bench, moment: Moment): Promise<ComputeObservation> {
    const branchId = newBranchId();
    const source = { kind: 'history', branchId: b.ref.branchId, moment, adminSecret: b.adminSecret } as const;
    await b.driver.createBranch({ ...b.ref, branchId, pgVersion, source });
    return b.start(1, { branchId, endpointId: newEndpointId() });
  }
  const numbers = async (b: Bench, on: ComputeObservation) =>
    ((await b.query(on, 'SELECT n FROM t ORDER BY n')) ?? []).map(({ n }) => n);
  async function now(b: Bench, on: ComputeObservation): Promise<{ at: string; lsn: string }> {
    const [row] = (await b.query(on, 'SELECT clock_timestamp() AS at, pg_current_wal_lsn() AS lsn')) ?? [];
    if (!(row?.at instanceof Date)) throw new Error('the server did not tell the time');
    return { at: row.at.toISOString(), lsn: String(row.lsn) };
  }

  test('gives the moments before, between and after commits, by time and by position', async () => {
    const b = new Bench(subject);
    const running = await b.started();
    await b.driver.configure(b.ref, ownerAndDatabase);
    await b.query(running, 'CREATE TABLE t (n int)');
    const moments: { at: string; lsn: string }[] = [];
    for (const n of [1, 2, 3]) {
      await b.query(running, `INSERT INTO t VALUES (${n})`);
      await b.query(running, 'SELECT pg_sleep(0.01)');
      moments.push(await now(b, running));
      await b.query(running, 'SELECT pg_sleep(0.01)');
    }
    await b.driver.keepHistory(b.ref, policy);
    for (const [index, moment] of moments.entries()) {
      const expected = [1, 2, 3].slice(0, index + 1);
      expect(await numbers(b, await at(b, { kind: 'time', at: moment.at }))).toEqual(expected);
      expect(await numbers(b, await at(b, { kind: 'lsn', lsn: moment.lsn }))).toEqual(expected);
    }
    await b.query(running, 'DROP TABLE t');
    await b.driver.suspend(b.ref, 1);
    const last = moments.at(-1) as { at: string };
    expect(await numbers(b, await at(b, { kind: 'time', at: last.at }))).toEqual([1, 2, 3]);
    const before = { kind: 'time', at: new Date(Date.now() - 3_600_000).toISOString() } as const;
    await expect(at(b, before)).rejects.toThrow(NoSuchMomentError);
    await b.driver.removeProject(b.ref);
    expect(await readdir(subject.layout.histories)).toEqual([]);
  });
});
