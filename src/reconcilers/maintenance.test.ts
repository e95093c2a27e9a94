import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { command, makeProject } from '../../test/helpers/commands.ts';
import { makeCore, type TestCore } from '../../test/helpers/core.ts';
import { drain } from '../../test/helpers/drain.ts';
import { FakeDriver } from '../compute/fake/fake-driver.ts';
import { updateEndpointOf } from '../core/endpoint-update.ts';
import { updateProjectOf } from '../core/project.ts';
import { createLogger } from '../lib/log.ts';
import { makeMaintenance } from './maintenance.ts';

const log = createLogger({ level: 'silent', process: 'test' });
const newer = { 17: '17.9-new' };
/** A Monday. */
const monday = '2026-03-02';

let domain: TestCore;
let now: Date;
beforeAll(async () => {
  const made = await makeCore({ defaultPlan: 'scale' });
  domain = { ...made, core: { ...made.core, clock: { now: () => now } } };
});
afterAll(() => domain.close());
beforeEach(async () => {
  await domain.core.database.sql`delete from projects`;
  now = new Date(`${monday}T05:00:00Z`);
});

/** A compute that runs an older build than there is by now. */
async function stage(suspendTimeoutSeconds = -1) {
  const driver = new FakeDriver();
  const { project, endpoint } = await makeProject(domain);
  await drain(domain.core, driver);
  const address = { projectId: project.id, endpointId: endpoint.id };
  const maintenance_window = { weekdays: [1], start_time: '06:00', end_time: '07:00' };
  await command(domain, async (scope) => {
    await updateEndpointOf(scope, domain.caller, address, { suspendTimeoutSeconds });
    await updateProjectOf(scope, domain.caller, project.id, { settings: { maintenance_window } });
  });
  const { sql } = domain.core.database;
  const runOldBuild = () =>
    sql`update endpoints set server = server || '{"release": "17.8-old"}' where id = ${endpoint.id}`;
  await runOldBuild();
  const turn = async (time: string, releases: Record<number, string> = newer, day = monday) => {
    now = new Date(`${day}T${time}:00Z`);
    await makeMaintenance(releases).turn({ core: domain.core, driver, log });
    await drain(domain.core, driver);
  };
  const pid = () => driver.computes.get(endpoint.id)?.process?.pid;
  return { driver, endpoint, runOldBuild, turn, pid };
}

describe('a compute that never sleeps', () => {
  test('is restarted for an update in its window, and not before', async () => {
    const { turn, pid } = await stage();
    const first = pid();
    await turn('05:59');
    expect(pid()).toBe(first);
    await turn('06:10');
    expect(pid()).not.toBe(first);
    expect(pid()).toBeDefined();
  });

  test('is restarted once, even when that changes nothing, until the next window', async () => {
    const { runOldBuild, turn, pid } = await stage();
    await turn('06:10');
    const second = pid();
    await runOldBuild();
    await turn('06:20');
    expect(pid()).toBe(second);
    await turn('06:10', newer, '2026-03-09');
    expect(pid()).not.toBe(second);
  });

  test('is left alone without an update', async () => {
    const { turn, pid } = await stage();
    const first = pid();
    await turn('06:10', { 17: '17.8-old' });
    expect(pid()).toBe(first);
  });
});

test('a compute that may sleep is left alone: it gets the update when it wakes', async () => {
  const { turn, pid } = await stage(0);
  const first = pid();
  await turn('06:10');
  expect(pid()).toBe(first);
});
