import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { command, makeProject } from '../../test/helpers/commands.ts';
import { makeCore, type TestCore } from '../../test/helpers/core.ts';
import { drain } from '../../test/helpers/drain.ts';
import { FakeDriver } from '../compute/fake/fake-driver.ts';
import { NoSuchMomentError } from '../compute/interface/driver.ts';
import { updateHistory } from '../db/histories.ts';
import { selectLook, selectOpenLooks } from '../db/looks.ts';
import { createLogger } from '../lib/log.ts';
import { buildVerifier } from '../lib/scram-verifier.ts';
import { looks as reconciler } from '../reconcilers/looks.ts';
import { deleteBranch } from './branch.ts';
import { createBranch } from './branch-create.ts';
import { readScope } from './context.ts';
import { createLooks, findLookRoute, type LookRequest, looksPerProjectMax, requestLook } from './look.ts';
import { readHistoryTotals } from './moments.ts';

let domain: TestCore;
beforeAll(async () => {
  const made = await makeCore({ lookIdleSeconds: 60, looksMax: 6 });
  // The fake's log may be a moment ahead of the time of day, and the future is refused.
  domain = { ...made, core: { ...made.core, clock: { now: () => new Date(Date.now() + 1_000) } } };
});
afterAll(() => domain.close());
beforeEach(() => domain.core.database.sql`delete from projects`);

const log = createLogger({ level: 'silent', process: 'test' });

/** A project with a history, and clients that know the password of its first role. */
async function stage(driver = new FakeDriver()) {
  const made = await makeProject(domain);
  await drain(domain.core, driver);
  const { sql } = domain.core.database;
  const { projectId, id: branchId } = made.branch;
  const history = await driver.keepHistory({ projectId, branchId, tenantUid: null }, { retentionSeconds: 3_600 });
  await updateHistory(sql, branchId, history);
  const timestamp = history?.until?.at ?? '';
  const verifier = driver.branches.get(branchId)?.roles.get(made.role.name)?.verifier ?? '';
  const request: LookRequest = { name: branchId, moment: { timestamp }, role: made.role.name, verifier };
  const ask = (change: Partial<LookRequest> = {}) =>
    command(domain, (scope) => requestLook(scope, { ...request, ...change }));
  /** As a client does, with a worker beside it. */
  const open = async (change: Partial<LookRequest> = {}) => {
    const looks = await createLooks(domain.core);
    try {
      await ask(change);
      await drain(domain.core, driver);
      return await looks.open({ ...request, ...change });
    } finally {
      await looks.close();
    }
  };
  const turnAfter = async (seconds: number) => {
    const clock = { now: () => new Date(Date.now() + seconds * 1_000) };
    await reconciler.turn({ core: { ...domain.core, clock }, driver, log });
    await drain(domain.core, driver);
  };
  return { ...made, driver, timestamp, request, ask, open, turnAfter };
}

const branchesAndComputes = ({ branches, computes }: FakeDriver) => [branches.size, computes.size];

describe('opening', () => {
  test('gives a frozen compute that clients of one moment share', async () => {
    const s = await stage();
    const id = await s.open();
    expect(await s.open({ name: s.endpoint.id })).toBe(id);
    expect(s.driver.computes.get(id)).toMatchObject({ frozen: true, process: { generation: 2 } });
    expect(await findLookRoute(domain.core, id)).toMatchObject({ kind: 'unix', sessions: expect.any(Number) });
    expect(await readHistoryTotals(readScope(domain.core))).toMatchObject({ looks: 1 });
    const earlier = new Date(Date.parse(s.timestamp) - 3_600_000).toISOString();
    await expect(s.ask({ moment: { timestamp: earlier } })).rejects.toThrow('neon_timestamp is outside the history');
  });

  test('lets a role in with its password of now', async () => {
    const s = await stage();
    const old = await s.open();
    const verifier = buildVerifier('changed');
    const id = await s.open({ verifier });
    expect(id).not.toBe(old);
    const data = s.driver.computes.get(id)?.ref.branchId ?? '';
    expect(s.driver.branches.get(data)?.roles.get(s.role.name)?.verifier).toBe(verifier);
    expect(s.driver.branches.get(s.branch.id)?.roles.get(s.role.name)?.verifier).not.toBe(verifier);
  });

  test('refuses a role that did not exist then, and makes none', async () => {
    const s = await stage();
    await expect(s.open({ role: 'later' })).rejects.toMatchObject({
      kind: 'not_found',
      message: 'role "later" did not exist at that moment',
    });
    const names = [...s.driver.branches.values()].flatMap(({ roles }) => [...roles.keys()]);
    expect(names).not.toContain('later');
  });

  test.each([
    [{ lsn: 'zero' }, 'neon_lsn must be a position in the log'],
    [{ timestamp: 'yesterday' }, 'neon_timestamp must be a time'],
    [{ timestamp: '2020-01-01T00:00:00Z' }, 'which reaches from'],
    [{ lsn: '0/1', timestamp: '2020-01-01T00:00:00Z' }, 'exclude each other'],
  ])('refuses %o as the API does', async (moment, message) => {
    const s = await stage();
    await expect(s.ask({ moment })).rejects.toThrow(message);
  });

  test('passes on why the driver cannot give the moment, and leaves nothing', async () => {
    const s = await stage();
    const { id } = await s.ask();
    s.driver.failNext('createBranch', new NoSuchMomentError('the history has lost it'));
    await drain(domain.core, s.driver);
    expect(await selectLook(domain.core.database.sql, id)).toMatchObject({
      state: 'refused',
      refusal: 'the history has lost it',
    });
    expect(branchesAndComputes(s.driver)).toEqual([1, 1]);
    await s.turnAfter(61);
    expect(await selectLook(domain.core.database.sql, id)).toBeUndefined();
  });

  test('is bounded for a project and for the installation', async () => {
    const s = await stage();
    const verifiers = Array.from({ length: looksPerProjectMax + 1 }, (_, index) => buildVerifier(String(index)));
    for (const verifier of verifiers.slice(1)) await s.ask({ verifier });
    const [another = ''] = verifiers;
    await expect(s.ask({ verifier: another })).rejects.toMatchObject({
      kind: 'too_many_connections',
      message: expect.stringContaining('the project has 4 looks into the past open'),
    });
    const other = await stage(s.driver);
    for (const verifier of verifiers.slice(1, 3)) await other.ask({ verifier });
    await expect(other.ask({ verifier: another })).rejects.toThrow('this installation has 6 looks');
  });
});

describe('closing', () => {
  test('after its last use, with all it had', async () => {
    const s = await stage();
    const id = await s.open();
    expect(branchesAndComputes(s.driver)).toEqual([2, 2]);
    await s.turnAfter(58);
    expect(await findLookRoute(domain.core, id)).not.toBeNull();
    await s.turnAfter(62);
    expect(await selectLook(domain.core.database.sql, id)).toBeUndefined();
    expect(branchesAndComputes(s.driver)).toEqual([1, 1]);
  });

  test('not while its server is busy', async () => {
    const s = await stage();
    const id = await s.open();
    const busy = { kind: 'query', description: 'a query', pid: 1, since: new Date() } as const;
    const work = { ...busy, role: null, applicationName: null, slot: null };
    s.driver.work.set(id, { work, lastWorkAt: null });
    await s.turnAfter(62);
    expect(await findLookRoute(domain.core, id)).not.toBeNull();
  });

  test('at once when its server is lost, and when its branch is deleted', async () => {
    const s = await stage();
    s.driver.kill(await s.open());
    await s.turnAfter(0);
    expect(await selectOpenLooks(domain.core.database.sql)).toEqual([]);
    const { branch } = await command(domain, (scope) =>
      createBranch(scope, domain.caller, s.project.id, { annotation: {}, endpoints: [] }),
    );
    await drain(domain.core, s.driver);
    await s.open({ name: branch.id, verifier: buildVerifier('any') }).catch(() => undefined);
    await command(domain, (scope) => deleteBranch(scope, domain.caller, s.project.id, branch.id, true));
    await drain(domain.core, s.driver);
    await s.turnAfter(0);
    expect(branchesAndComputes(s.driver)).toEqual([1, 1]);
  });
});
