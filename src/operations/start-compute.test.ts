import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { command, makeProject } from '../../test/helpers/commands.ts';
import { makeCore, type TestCore } from '../../test/helpers/core.ts';
import { drain } from '../../test/helpers/drain.ts';
import { FakeDriver } from '../compute/fake.ts';
import { startEndpoint, suspendEndpoint } from '../core/endpoint.ts';
import { jobRegistry } from './registry.ts';
import type { Step } from './step.ts';

let made: TestCore;
beforeAll(async () => {
  made = await makeCore();
});
afterAll(() => made.close());

async function stage() {
  const driver = new FakeDriver();
  const { project, branch, endpoint } = await makeProject(made);
  await drain(made.core, driver);
  const nap = async () => {
    await command(made, (scope) => suspendEndpoint(scope, made.caller, project.id, endpoint.id));
    await drain(made.core, driver);
  };
  /** The methods of the driver that a wake calls. */
  const wake = async () => {
    const before = driver.calls.length;
    await command(made, (scope) => startEndpoint(scope, made.caller, project.id, endpoint.id));
    await drain(made.core, driver);
    return driver.calls.slice(before).map(({ method }) => method);
  };
  return { driver, project, branch, endpoint, nap, wake };
}

describe('a wake', () => {
  test('after a nap asks the server nothing that was recorded when it fell asleep', async () => {
    const { nap, wake } = await stage();
    await nap();
    expect(await wake()).toEqual(['start', 'observe']);
    await nap();
    expect(await wake()).toEqual(['start', 'observe']);
  });

  test('after an accident reads what owners may have changed by SQL', async () => {
    const { driver, branch, endpoint, nap, wake } = await stage();
    await nap();
    await wake();
    driver.branches.get(branch.id)?.roles.set('by_sql', { name: 'by_sql', verifier: null });
    driver.kill(endpoint.id);
    await nap();
    expect(await wake()).toContain('configure');
    const rows = await made.core.database
      .sql`select name from roles where branch_id = ${branch.id} and name = 'by_sql'`;
    expect(rows).toHaveLength(1);
  });

  test('is tried from its beginning when the server dies just before its route opens', async () => {
    const { driver, branch, endpoint, nap } = await stage();
    await nap();
    await made.core.database.sql`update branches set catalog_kept = false where id = ${branch.id}`;
    await command(made, (scope) => startEndpoint(scope, made.caller, endpoint.projectId, endpoint.id));
    let deaths = 0;
    const open = jobRegistry.start_compute.steps.open_route as Step;
    const dying: Step = (context) => {
      if (deaths++ === 0) driver.kill(endpoint.id);
      return open(context);
    };
    const steps = { ...jobRegistry.start_compute.steps, open_route: dying };
    await drain(made.core, driver, { ...jobRegistry, start_compute: { ...jobRegistry.start_compute, steps } });
    expect(deaths).toBe(2);
    expect(driver.computes.get(endpoint.id)?.process).not.toBeNull();
  });

  test('carries out what is pending', async () => {
    const { driver, branch, nap, wake } = await stage();
    await nap();
    driver.branches.get(branch.id)?.databases.clear();
    await made.core.database.sql`update databases set pending = true where branch_id = ${branch.id}`;
    expect(await wake()).toContain('configure');
    expect(driver.branches.get(branch.id)?.databases.size).toBe(1);
  });
});
