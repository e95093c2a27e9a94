import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { command, makeProject } from '../../test/helpers/commands.ts';
import { makeCore, type TestCore } from '../../test/helpers/core.ts';
import { drain } from '../../test/helpers/drain.ts';
import { eventually } from '../../test/helpers/eventually.ts';
import { FakeDriver } from '../compute/fake/fake-driver.ts';
import { createBranch } from '../core/branch-create.ts';
import { startEndpoint, suspendEndpoint } from '../core/endpoint.ts';
import { selectBranchInAnyState } from '../db/branches.ts';
import { sumHistories } from '../db/histories.ts';
import { updateProject } from '../db/projects.ts';
import { minuteMs } from '../lib/clock.ts';
import type { BranchId } from '../lib/ids.ts';
import { createLogger } from '../lib/log.ts';
import { makeHistory, makeNewHistories } from './history.ts';

let domain: TestCore;
beforeAll(async () => {
  domain = await makeCore();
});
afterAll(() => domain.close());
beforeEach(() => domain.core.database.sql`delete from projects`);

async function stage({ slowMs = 60_000 } = {}) {
  const driver = new FakeDriver();
  const made = await makeProject(domain);
  await drain(domain.core, driver);
  const log = createLogger({ level: 'silent', process: 'test' });
  const [warned, failed] = [vi.spyOn(log, 'warn'), vi.spyOn(log, 'error')];
  let now = Date.now();
  const clock = { now: () => new Date(now) };
  const { turn } = makeHistory({ slowMs });
  /** The branches that a turn asks the driver for, so many minutes after the last one. */
  const turnAfter = async (minutes: number) => {
    now += minutes * minuteMs;
    const before = driver.calls.length;
    await turn({ core: { ...domain.core, clock }, driver, log });
    const calls = driver.calls.slice(before).filter(({ method }) => method === 'keepHistory');
    return calls.map(({ subject }) => subject);
  };
  const onRecord = async (id: BranchId = made.branch.id) =>
    (await selectBranchInAnyState(domain.core.database.sql, id))?.history ?? null;
  return { ...made, driver, turnAfter, onRecord, warned, failed };
}

const suspend = ({ project, endpoint }: Awaited<ReturnType<typeof stage>>) =>
  command(domain, (scope) => suspendEndpoint(scope, domain.caller, project.id, endpoint.id));

describe('which branches', () => {
  test('awake ones in each turn, one that fell asleep once more, and then a hundred times in its window', async () => {
    const s = await stage();
    expect(await s.turnAfter(0)).toEqual([s.branch.id]);
    expect(await s.turnAfter(1)).toEqual([s.branch.id]);
    await suspend(s);
    await drain(domain.core, s.driver);
    expect(await s.turnAfter(1)).toEqual([s.branch.id]);
    expect(await s.turnAfter(1)).toEqual([]);
    expect(await s.turnAfter(13)).toEqual([]);
    expect(await s.turnAfter(1)).toEqual([s.branch.id]);
  });

  test('none that has slept for longer than its window, until it wakes', async () => {
    const s = await stage();
    await s.turnAfter(0);
    await suspend(s);
    await drain(domain.core, s.driver);
    vi.spyOn(s.driver, 'keepHistory').mockImplementationOnce(async () => {
      const at = new Date(Date.now() - 25 * 60 * minuteMs).toISOString();
      const position = { at, lsn: '0/1000000' };
      return { from: position, until: position, gaps: [], baseCount: 1, baseBytes: 1, logBytes: 1 };
    });
    await s.turnAfter(1);
    expect(await s.turnAfter(10_000)).toEqual([]);
    await command(domain, (scope) => startEndpoint(scope, domain.caller, s.project.id, s.endpoint.id));
    await drain(domain.core, s.driver);
    expect(await s.turnAfter(0)).toEqual([s.branch.id]);
  });

  test('one that was awake between two turns, however short that was', async () => {
    const s = await stage();
    await suspend(s);
    await drain(domain.core, s.driver);
    await s.turnAfter(1);
    await command(domain, (scope) => startEndpoint(scope, domain.caller, s.project.id, s.endpoint.id));
    await drain(domain.core, s.driver);
    await suspend(s);
    await drain(domain.core, s.driver);
    expect(await s.turnAfter(0)).toEqual([s.branch.id]);
    expect(await s.turnAfter(0)).toEqual([]);
  });

  test('one that has written much again at once', async () => {
    const s = await stage();
    await s.turnAfter(0);
    const log = s.driver.branches.get(s.branch.id)?.log;
    if (log !== undefined) log.lsn += 1n << 27n;
    expect(await s.turnAfter(0)).toEqual([s.branch.id, s.branch.id]);
    expect(await s.turnAfter(0)).toEqual([s.branch.id]);
  });

  test('one that woke while it was being kept is due again', async () => {
    const s = await stage();
    await suspend(s);
    await drain(domain.core, s.driver);
    const original = s.driver.keepHistory.bind(s.driver);
    vi.spyOn(s.driver, 'keepHistory').mockImplementationOnce(async (ref, policy) => {
      await command(domain, (scope) => startEndpoint(scope, domain.caller, s.project.id, s.endpoint.id));
      await drain(domain.core, s.driver);
      await suspend(s);
      await drain(domain.core, s.driver);
      return original(ref, policy);
    });
    expect(await s.turnAfter(1)).toEqual([s.branch.id]);
    expect(await s.turnAfter(0)).toEqual([s.branch.id]);
    expect(await s.turnAfter(0)).toEqual([]);
  });

  test('a new one at once, without a compute too, and none of a deleted project', async () => {
    const s = await stage();
    await s.turnAfter(0);
    const { branch } = await command(domain, (scope) =>
      createBranch(scope, domain.caller, s.project.id, { annotation: {}, endpoints: [] }),
    );
    await drain(domain.core, s.driver);
    expect((await s.turnAfter(0)).toSorted()).toEqual([s.branch.id, branch.id].toSorted());
    await domain.core.database.sql`update projects set deleting_at = now()`;
    expect(await s.turnAfter(9)).toEqual([]);
  });

  test('new data is asked about once by a loop of its own, and again after a restore', async () => {
    const s = await stage();
    const { sql } = domain.core.database;
    const { turn } = makeNewHistories();
    const log = createLogger({ level: 'silent', process: 'test' });
    const asked = async () => {
      const before = s.driver.calls.length;
      await turn({ core: domain.core, driver: s.driver, log });
      return s.driver.calls.slice(before).map(({ method, subject }) => `${method} ${subject}`);
    };
    s.driver.failNext('keepHistory', new Error('not yet'));
    expect(await asked()).toEqual([`keepHistory ${s.branch.id}`]);
    expect(await asked()).toEqual([]);
    expect(await s.onRecord()).toBeNull();
    await sql`update branches set last_reset_at = date_trunc('milliseconds', now())`;
    expect(await asked()).toEqual([`keepHistory ${s.branch.id}`]);
    expect(await s.onRecord()).toMatchObject({ from: { at: expect.any(String) } });
    expect(await asked()).toEqual([]);
  });

  test('one that is slow does not hold up the others', async () => {
    const s = await stage({ slowMs: 20 });
    const { driver } = s;
    const { branch } = await command(domain, (scope) =>
      createBranch(scope, domain.caller, s.project.id, { annotation: {}, endpoints: [{ type: 'read_write' }] }),
    );
    await drain(domain.core, driver);
    let finish = () => {};
    const finished = new Promise<void>((resolve) => {
      finish = resolve;
    });
    const original = driver.keepHistory.bind(driver);
    vi.spyOn(driver, 'keepHistory').mockImplementation(async (ref, policy) => {
      if (ref.branchId === s.branch.id) await finished;
      return original(ref, policy);
    });
    for (const minutes of [0, 1]) {
      const before = driver.calls.length;
      await s.turnAfter(minutes);
      // On a busy machine the turn may be over before it has come to the other one.
      await eventually(async () =>
        expect(driver.calls.slice(before).map(({ subject }) => subject)).toEqual([branch.id]),
      );
      await eventually(async () => expect(await s.onRecord(branch.id)).not.toBeNull());
    }
    expect(await s.onRecord()).toBeNull();
    finish();
    await eventually(async () => expect(await s.onRecord()).not.toBeNull());
    expect((await s.turnAfter(1)).toSorted()).toEqual([s.branch.id, branch.id].toSorted());
  });
});

describe('what is recorded', () => {
  test('the window and the costs, when something changed', async () => {
    const s = await stage();
    await s.turnAfter(0);
    const first = await s.onRecord();
    expect(first).toMatchObject({ from: { at: expect.any(String), lsn: expect.any(String) }, gaps: [], baseCount: 1 });
    await s.turnAfter(0);
    expect(await s.onRecord()).toEqual(first);
    s.driver.branches.get(s.branch.id)?.roles.set('by_sql', { name: 'by_sql', verifier: null });
    await s.turnAfter(0);
    const second = await s.onRecord();
    expect(second?.from).toEqual(first?.from);
    expect(second?.until?.lsn).not.toBe(first?.until?.lsn);
    expect(await sumHistories(domain.core.database.sql, 60)).toMatchObject({ branches: 1, behind: 0, gaps: 0 });
  });

  test('nothing is kept when the project keeps none', async () => {
    const s = await stage();
    await s.turnAfter(0);
    await updateProject(domain.core.database.sql, s.project.id, { historyRetentionSeconds: 0 });
    await s.turnAfter(0);
    expect(await s.onRecord()).toMatchObject({ from: null, until: null, logBytes: 0 });
    expect(await sumHistories(domain.core.database.sql, -1)).toMatchObject({ branches: 0, behind: 0 });
  });
});

describe('trouble', () => {
  test('a gap is announced once, and counted', async () => {
    const s = await stage();
    await s.turnAfter(0);
    const { from, until } = (await s.onRecord()) ?? {};
    const log = s.driver.branches.get(s.branch.id)?.log;
    if (log && from && until) log.gaps = [{ from, until }];
    await s.turnAfter(0);
    await s.turnAfter(0);
    expect(s.warned).toHaveBeenCalledTimes(1);
    expect(s.warned).toHaveBeenCalledWith(
      expect.objectContaining({ branch: s.branch.id }),
      expect.stringMatching(/gap/),
    );
    expect(await sumHistories(domain.core.database.sql, 60)).toMatchObject({ gaps: 1 });
  });

  test('a branch that cannot be kept is reported once, and once that it is behind', async () => {
    const s = await stage();
    await s.turnAfter(0);
    s.driver.failNext('keepHistory', new Error('no room'), 4);
    for (const minutes of [0.5, 0.4, 0.4, 0.4]) await s.turnAfter(minutes);
    expect(s.failed).toHaveBeenCalledTimes(1);
    expect(s.warned).toHaveBeenCalledTimes(1);
    expect(s.warned).toHaveBeenCalledWith(expect.anything(), 'the history of a branch is behind');
    expect(await sumHistories(domain.core.database.sql, -1)).toMatchObject({ behind: 1 });
    await s.turnAfter(0);
    s.driver.failNext('keepHistory', new Error('no room again'));
    await s.turnAfter(0);
    expect(s.failed).toHaveBeenCalledTimes(2);
  });

  test('a branch that is removed while it is kept is no failure', async () => {
    const s = await stage();
    const { branch } = await command(domain, (scope) =>
      createBranch(scope, domain.caller, s.project.id, { annotation: {}, endpoints: [] }),
    );
    await drain(domain.core, s.driver);
    const log = createLogger({ level: 'silent', process: 'test' });
    const failed = vi.spyOn(log, 'error');
    const original = s.driver.keepHistory.bind(s.driver);
    vi.spyOn(s.driver, 'keepHistory').mockImplementation(async (ref, policy) => {
      if (ref.branchId !== branch.id) return original(ref, policy);
      await domain.core.database.sql`update branches set deleting_at = now() where id = ${branch.id}`;
      throw new Error('ENOENT: no such file or directory');
    });
    await makeNewHistories().turn({ core: domain.core, driver: s.driver, log });
    await domain.core.database.sql`update branches set deleting_at = null where id = ${branch.id}`;
    await s.turnAfter(0);
    expect([...failed.mock.calls, ...s.failed.mock.calls]).toEqual([]);
  });

  test('a compute that has slept long is not behind when it wakes', async () => {
    const s = await stage();
    await suspend(s);
    await drain(domain.core, s.driver);
    await s.turnAfter(0);
    await command(domain, (scope) => startEndpoint(scope, domain.caller, s.project.id, s.endpoint.id));
    await drain(domain.core, s.driver);
    s.driver.failNext('keepHistory', new Error('just now'));
    await s.turnAfter(4);
    expect(s.warned).not.toHaveBeenCalled();
  });
});
