import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { command, makeProject } from '../../test/helpers/commands.ts';
import { makeCore, type TestCore } from '../../test/helpers/core.ts';
import { drain } from '../../test/helpers/drain.ts';
import { FakeDriver } from '../compute/fake/fake-driver.ts';
import { suspendEndpoint } from '../core/endpoint.ts';
import { jobRegistry } from './registry.ts';
import type { Step, StepContext } from './step.ts';

let made: TestCore;
beforeAll(async () => {
  made = await makeCore();
});
afterAll(() => made.close());

async function stage() {
  const driver = new FakeDriver();
  const { project, branch, endpoint } = await makeProject(made);
  const { sql } = made.core.database;
  await drain(made.core, driver);
  /** Puts the compute to sleep, and returns what was asked of the driver; something may happen just before the stop. */
  const nap = async (beforeStop: (context: StepContext) => unknown = () => undefined) => {
    await command(made, (scope) => suspendEndpoint(scope, made.caller, project.id, endpoint.id));
    const before = driver.calls.length;
    const job = jobRegistry.suspend_compute;
    const stop: Step = async (context) => {
      await beforeStop(context);
      return (job.steps.stop as Step)(context);
    };
    const steps = { ...job.steps, stop };
    await drain(made.core, driver, { ...jobRegistry, suspend_compute: { ...job, steps } });
    return driver.calls.slice(before).map(({ method }) => method);
  };
  const addBySql = (name: string) => driver.branches.get(branch.id)?.roles.set(name, { name, verifier: null });
  const recorded = async () => {
    const [row] = await sql`select catalog_kept, logical_size from branches where id = ${branch.id}`;
    const roles = await sql`select name from roles where branch_id = ${branch.id}`;
    const [{ currentState } = {}] = await sql`select current_state from endpoints where id = ${endpoint.id}`;
    return { ...row, currentState, names: roles.map(({ name }) => name) };
  };
  return { driver, nap, addBySql, recorded };
}

describe('a suspend', () => {
  test('opens one session in the server, and records what was read there', async () => {
    const { nap, addBySql, recorded } = await stage();
    addBySql('by_sql');
    expect(await nap()).toEqual(['settle', 'sample', 'suspend']);
    const { names, ...row } = await recorded();
    expect(row).toEqual({ currentState: 'idle', catalogKept: true, logicalSize: 30_000_000 });
    expect(names).toContain('by_sql');
  });

  test('has recorded what owners changed before the server stops, in case the worker dies with it', async () => {
    const { nap, addBySql, recorded } = await stage();
    addBySql('by_sql');
    const before: unknown[] = [];
    await nap(async () => before.push((await recorded()).names));
    expect(before).toEqual([expect.arrayContaining(['by_sql'])]);
  });

  test('does not rely on what was read when the server was changed after that', async () => {
    const { nap, addBySql, recorded } = await stage();
    await nap(() => addBySql('late'));
    expect(await recorded()).toMatchObject({ currentState: 'idle', catalogKept: false });
  });

  test('that another worker goes on with reads the server again', async () => {
    const { nap, addBySql, recorded } = await stage();
    await nap(({ memory }) => {
      delete memory.compute;
      delete memory.settled;
      addBySql('late');
    });
    const { names, ...row } = await recorded();
    expect(row).toMatchObject({ currentState: 'idle', catalogKept: true });
    expect(names).toContain('late');
  });
});
