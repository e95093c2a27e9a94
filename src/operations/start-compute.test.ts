import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { command, makeProject } from '../../test/helpers/commands.ts';
import { makeCore, type TestCore } from '../../test/helpers/core.ts';
import { drain } from '../../test/helpers/drain.ts';
import { eventually } from '../../test/helpers/eventually.ts';
import { FakeDriver } from '../compute/fake/fake-driver.ts';
import { startEndpoint, suspendEndpoint } from '../core/endpoint.ts';
import { parseRouteNews, routesChannel } from '../db/wakes.ts';
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
  test('after a nap asks the server nothing that was recorded, and lets logins begin when it is ready', async () => {
    const { nap, wake } = await stage();
    await nap();
    expect(await wake()).toEqual(['start', 'expectClients']);
    await nap();
    expect(await wake()).toEqual(['start', 'expectClients']);
  });

  test('after an accident reads what owners may have changed by SQL', async () => {
    const { driver, branch, endpoint, nap, wake } = await stage();
    await nap();
    await wake();
    driver.branches.get(branch.id)?.roles.set('by_sql', { name: 'by_sql', verifier: null });
    driver.kill(endpoint.id);
    await nap();
    const asked = await wake();
    expect(asked).toContain('configure');
    expect(asked).not.toContain('expectClients');
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

  describe('that is late', () => {
    const outage = Object.assign(new Error('nobody answers'), { isOutage: true });

    async function lateWake(minutes: number, error: Error) {
      const { driver, project, endpoint, nap } = await stage();
      await nap();
      await command(made, (scope) => startEndpoint(scope, made.caller, project.id, endpoint.id));
      const { sql } = made.core.database;
      const [late] = await sql`
        update operations set created_at = now() - ${minutes} * interval '1 minute', deadline_at = now() - interval '1 s'
        where endpoint_id = ${endpoint.id} and finished_at is null returning id`;
      driver.failNext('start', error, 2);
      await drain(made.core, driver);
      const [row] = await sql`
        select o.status, o.error, e.current_state from operations o join endpoints e on e.id = o.endpoint_id
        where o.id = ${late?.id ?? ''}`;
      return row;
    }

    test('goes through after an outage, however it shows', async () => {
      const woken = { status: 'finished', currentState: 'active' };
      expect(await lateWake(30, outage)).toMatchObject(woken);
      expect(await lateWake(30, new Error('the start failed', { cause: outage }))).toMatchObject(woken);
    });

    test('ends with its error after an hour, and at once for another reason', async () => {
      const asleep = { status: 'error', currentState: 'idle' };
      expect(await lateWake(61, outage)).toMatchObject({ ...asleep, error: 'nobody answers' });
      expect(await lateWake(3, new Error('no room'))).toMatchObject({ ...asleep, error: 'no room' });
    });
  });

  test('tells proxies where the server is, unless a suspend was asked for meanwhile', async () => {
    const { driver, project, endpoint, nap, wake } = await stage();
    const told: unknown[] = [];
    const unlisten = await made.core.database.listen(routesChannel, (payload) => {
      if (payload !== '') told.push(parseRouteNews(payload));
    });
    const shown = async () => {
      const [row] = await made.core.database.sql`
        select current_state, pending_state, address, server from endpoints where id = ${endpoint.id}`;
      return row;
    };
    await nap();
    await wake();
    expect(await shown()).toMatchObject({ currentState: 'active', pendingState: null, server: { minCu: 0.25 } });
    const route = expect.objectContaining((await shown())?.address);
    await eventually(() => expect(told).toEqual([{ endpointId: endpoint.id, route }]));

    await nap();
    await command(made, (scope) => startEndpoint(scope, made.caller, project.id, endpoint.id));
    const open = jobRegistry.start_compute.steps.open_route as Step;
    const overtaken: Step = async (context) => {
      const result = await open(context);
      await command(made, (scope) => suspendEndpoint(scope, made.caller, project.id, endpoint.id));
      return result;
    };
    const steps = { ...jobRegistry.start_compute.steps, open_route: overtaken };
    await drain(made.core, driver, { ...jobRegistry, start_compute: { ...jobRegistry.start_compute, steps } });
    expect(await shown()).toMatchObject({ currentState: 'idle', pendingState: null, address: null });
    expect(driver.computes.get(endpoint.id)?.process).toBeNull();
    await unlisten();
    expect(told).toHaveLength(1);
  });

  test('opens no route for a worker that lost its lease', async () => {
    const { driver, project, endpoint, nap } = await stage();
    await nap();
    await command(made, (scope) => startEndpoint(scope, made.caller, project.id, endpoint.id));
    const { sql } = made.core.database;
    const open = jobRegistry.start_compute.steps.open_route as Step;
    let runs = 0;
    const robbed: Step = async (context) => {
      const result = await open(context);
      if (runs++ === 0) {
        await sql`update operations set lease = gen_random_uuid(), lease_until = now() where id = ${context.operation.id}`;
        expect(result.kind === 'done' && (await result.atOnce?.(sql, randomUUID()))).toBe(false);
        const [row] = await sql`select address from endpoints where id = ${endpoint.id}`;
        expect(row).toEqual({ address: null });
      }
      return result;
    };
    const steps = { ...jobRegistry.start_compute.steps, open_route: robbed };
    await drain(made.core, driver, { ...jobRegistry, start_compute: { ...jobRegistry.start_compute, steps } });
    expect(runs).toBe(2);
    const [row] =
      await sql`select current_state, address is not null as is_open from endpoints where id = ${endpoint.id}`;
    expect(row).toEqual({ currentState: 'active', isOpen: true });
  });

  test('carries out what is pending', async () => {
    const { driver, branch, nap, wake } = await stage();
    await nap();
    driver.branches.get(branch.id)?.databases.clear();
    await made.core.database.sql`update databases set pending = true where branch_id = ${branch.id}`;
    const asked = await wake();
    expect(asked).toContain('configure');
    expect(asked).not.toContain('expectClients');
    expect(driver.branches.get(branch.id)?.databases.size).toBe(1);
  });
});

test('a first start that fails for a moment still brings the role and the database of the project', async () => {
  const driver = new FakeDriver();
  driver.failNext('configure', new Error('the connection was lost'));
  const { branch, role } = await makeProject(made);
  await drain(made.core, driver);
  expect([...(driver.branches.get(branch.id)?.roles.keys() ?? [])]).toEqual([role.name]);
  const pending = await made.core.database.sql`select name from roles where branch_id = ${branch.id} and pending`;
  expect([...pending]).toEqual([]);
});
