import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { command, makeProject } from '../../test/helpers/commands.ts';
import { makeCore, type TestCore } from '../../test/helpers/core.ts';
import { drain } from '../../test/helpers/drain.ts';
import { FakeDriver } from '../compute/fake/fake-driver.ts';
import { createEndpoint } from '../core/endpoint.ts';
import { updateEndpointOf } from '../core/endpoint-update.ts';
import { createLogger } from '../lib/log.ts';
import { staleReplicas } from './stale-replicas.ts';

const log = createLogger({ level: 'silent', process: 'test' });
let made: TestCore;
beforeAll(async () => {
  made = await makeCore({ defaultPlan: 'scale' });
});
afterAll(() => made.close());

async function stage() {
  const driver = new FakeDriver();
  const { project, branch, endpoint: primary } = await makeProject(made);
  await drain(made.core, driver);
  const { endpoint: replica } = await command(made, (scope) =>
    createEndpoint(scope, made.caller, project.id, { type: 'read_only', branchId: branch.id }),
  );
  await drain(made.core, driver);
  const turn = async () => {
    await staleReplicas.turn({ core: made.core, driver, log });
    await drain(made.core, driver);
  };
  const runs = () => driver.computes.get(replica.id)?.process?.pid;
  const settings = (id: string) => driver.computes.get(id)?.settings ?? {};
  return { driver, project, primary, replica, turn, runs, settings };
}

describe('stale replicas', () => {
  test('one that follows is left alone', async () => {
    const { replica, turn, runs } = await stage();
    const pid = runs();
    await turn();
    expect(runs()).toBe(pid);
    const [row] = await made.core.database.sql`select replication from endpoints where id = ${replica.id}`;
    expect(row?.replication).toEqual({ lagBytes: 0, lagSeconds: 0 });
  });

  test('one that is too far behind is built anew', async () => {
    const { driver, replica, turn, runs } = await stage();
    const pid = runs();
    driver.replicas.delete(replica.id);
    await turn();
    expect(driver.replicas.has(replica.id)).toBe(true);
    expect(runs()).not.toBe(pid);
  });

  test('one whose primary has grown runs with at least its settings', async () => {
    const { project, primary, replica, turn, runs, settings } = await stage();
    const pid = runs();
    const address = { projectId: project.id, endpointId: primary.id };
    await command(made, (scope) => updateEndpointOf(scope, made.caller, address, { minCu: 2, maxCu: 2 }));
    await turn();
    expect(settings(primary.id).max_connections).not.toBe(undefined);
    await turn();
    expect(runs()).not.toBe(pid);
    for (const name of ['max_connections', 'max_worker_processes']) {
      expect(settings(replica.id)[name]).toBe(settings(primary.id)[name]);
    }
    const again = runs();
    await turn();
    expect(runs()).toBe(again);
  });
});
