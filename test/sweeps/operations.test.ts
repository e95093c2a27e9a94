/**
 * Every job, every step, every accident, over the registry: a new job or step is swept by being there. After each
 * accident every operation has come to an end, and deleting the project leaves the driver's world empty.
 */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FakeDriver } from '../../src/compute/fake.ts';
import { deleteBranch } from '../../src/core/branch.ts';
import { createBranch } from '../../src/core/branch-create.ts';
import { deleteEndpoint, suspendEndpoint } from '../../src/core/endpoint.ts';
import { isRemoval, type JobName } from '../../src/core/operation.ts';
import { deleteProject } from '../../src/core/project.ts';
import type { CreatedProject } from '../../src/core/project-create.ts';
import { createRole } from '../../src/core/role.ts';
import { createLogger } from '../../src/log.ts';
import { jobRegistry } from '../../src/operations/registry.ts';
import type { Job, Step } from '../../src/operations/step.ts';
import { lostComputes } from '../../src/reconcilers/lost-computes.ts';
import { command, makeProject } from '../helpers/commands.ts';
import { makeCore, type TestCore } from '../helpers/core.ts';
import { drain } from '../helpers/drain.ts';

const log = createLogger({ level: 'silent', role: 'sweep' });
let test: TestCore;
beforeAll(async () => {
  test = await makeCore();
});
afterAll(() => test.close());

interface Stage {
  readonly driver: FakeDriver;
  readonly made: CreatedProject;
}

/** What brings each job into the queue, on a project that is up. */
const scenarios: Record<JobName, (stage: Stage) => Promise<unknown>> = {
  create_timeline: () => makeProject(test, 'another'),
  start_compute: ({ driver, made }) => loseCompute(driver, made),
  check_availability: ({ driver, made }) => loseCompute(driver, made),
  suspend_compute: ({ made }) => suspend(made),
  apply_config: async ({ driver, made }) => {
    await suspend(made);
    await drain(test.core, driver);
    await command(test, (scope) =>
      createRole(scope, test.caller, { ...addressOf(made), name: `r${randomUUID()}`, noLogin: false }),
    );
  },
  create_branch: ({ made }) => addBranch(made),
  delete_timeline: (stage) => removeBranch(stage),
  remove_compute: async ({ driver, made }) => {
    await suspend(made);
    await drain(test.core, driver);
    await removeEndpoint(made);
  },
  suspend_and_remove_compute: ({ made }) => removeEndpoint(made),
  delete_project: ({ made }) => removeProject(made),
};

const addressOf = (made: CreatedProject) => ({ projectId: made.project.id, branchId: made.branch.id });
const suspend = (made: CreatedProject) =>
  command(test, (scope) => suspendEndpoint(scope, test.caller, made.project.id, made.endpoint.id));
const removeEndpoint = (made: CreatedProject) =>
  command(test, (scope) => deleteEndpoint(scope, test.caller, made.project.id, made.endpoint.id));
const removeProject = (made: CreatedProject) =>
  command(test, (scope) => deleteProject(scope, test.caller, made.project.id));
const addBranch = (made: CreatedProject) =>
  command(test, (scope) =>
    createBranch(scope, test.caller, made.project.id, { annotation: {}, endpoints: [{ type: 'read_write' }] }),
  );

async function removeBranch({ driver, made }: Stage): Promise<void> {
  const { branch } = await addBranch(made);
  await drain(test.core, driver);
  await command(test, (scope) => deleteBranch(scope, test.caller, made.project.id, branch.id));
}

async function loseCompute(driver: FakeDriver, made: CreatedProject): Promise<void> {
  driver.kill(made.endpoint.id);
  await lostComputes.turn({ core: test.core, driver, log });
}

type Registry = Readonly<Record<string, Job>>;

/** The registry with one step replaced; `used` tells whether the sweep reached it. */
function withStep(
  job: string,
  step: string,
  replace: (original: Step) => Step,
): { registry: Registry; used: () => number } {
  let uses = 0;
  const original = jobRegistry[job as JobName].steps[step];
  if (original === undefined) throw new Error(`there is no step ${step}`);
  const replaced = replace(original);
  const counted: Step = (context) => {
    uses++;
    return replaced(context);
  };
  const steps = { ...jobRegistry[job as JobName].steps, [step]: counted };
  return { registry: { ...jobRegistry, [job]: { ...jobRegistry[job as JobName], steps } }, used: () => uses };
}

const loseLease = (operationId: string) =>
  test.core.database.sql`
    update operations set lease = ${randomUUID()}, lease_until = now() - interval '1 s' where id = ${operationId}`;

/** Each wraps a step so that the accident happens in its first run. */
const accidents: Record<string, (original: Step) => Step> = {
  'run twice': (original) => async (context) => {
    await original(context);
    return original(context);
  },
  'killed after the effect, before the commit': (original) =>
    firstTime(async (context) => {
      const result = await original(context);
      await loseLease(context.operation.id);
      return result;
    }, original),
  'failed after the effect': (original) =>
    firstTime(async (context) => {
      await original(context);
      throw new Error('an accident');
    }, original),
  'cancelled by a deletion while it runs': (original) =>
    firstTime(async (context) => {
      const result = await original(context);
      await test.core.database.sql`update operations set status = 'cancelling' where id = ${context.operation.id}`;
      return result;
    }, original),
};

function firstTime(accident: Step, otherwise: Step): Step {
  let happened = false;
  return (context) => {
    if (happened) return otherwise(context);
    happened = true;
    return accident(context);
  };
}

async function stageProject(): Promise<Stage> {
  // What a failed test left must not fail the ones after it.
  await test.core.database.sql`truncate projects cascade`;
  const driver = new FakeDriver();
  const made = await makeProject(test);
  await drain(test.core, driver);
  return { driver, made };
}

/** Deletes every project and asserts that nothing is left of any of them. */
async function expectNothingLeft(driver: FakeDriver): Promise<void> {
  const { sql } = test.core.database;
  const unsettled = await sql`
    select job, step, status, error from operations where status not in ('finished', 'error', 'cancelled', 'skipped')`;
  expect([...unsettled]).toEqual([]);
  const projects = await sql<{ id: never }[]>`select id from projects where deleting_at is null`;
  for (const { id } of projects) await command(test, (scope) => deleteProject(scope, test.caller, id));
  await drain(test.core, driver);
  expect([...driver.branches.keys(), ...driver.computes.keys()]).toEqual([]);
  const [rows] = await sql`
    select (select count(*) from projects) + (select count(*) from branches) + (select count(*) from endpoints)
      + (select count(*) from operations) as count`;
  expect(rows?.count).toBe(0);
}

/** What the API says is what the driver's world holds. */
async function expectTruth(driver: FakeDriver): Promise<void> {
  const rows = await test.core.database.sql<{ id: string; currentState: string; pendingState: string | null }[]>`
    select id, current_state, pending_state from endpoints where deleting_at is null`;
  for (const { id, currentState, pendingState } of rows) {
    const runs = driver.computes.get(id)?.process != null;
    expect({ id, currentState, pendingState }).toEqual({
      id,
      currentState: runs ? 'active' : currentState,
      pendingState: null,
    });
    if (!runs) expect(currentState).not.toBe('active');
  }
}

const everyStep = Object.entries(jobRegistry).flatMap(([job, { steps }]) =>
  Object.keys(steps).map((step) => [job, step]),
);

describe.each(Object.entries(accidents))('%s:', (name, accident) => {
  // A deletion never cancels a removal.
  const swept = everyStep.filter(([job]) => !(name.startsWith('cancelled') && isRemoval(job as JobName)));
  it.each(swept)('%s, step %s', async (job, step) => {
    const stage = await stageProject();
    const { registry, used } = withStep(job ?? '', step ?? '', accident);
    await scenarios[job as JobName](stage);
    await drain(test.core, stage.driver, registry);
    expect(used(), 'the sweep never reached this step').toBeGreaterThan(0);
    if (!name.startsWith('cancelled')) await expectTruth(stage.driver);
    await expectNothingLeft(stage.driver);
  });
});

const methods = [
  'createBranch',
  'removeBranch',
  'start',
  'observe',
  'suspend',
  'removeCompute',
  'removeProject',
  'configure',
] as const;

describe.each(methods)('driver.%s fails', (method) => {
  it.each(Object.keys(scenarios))('during %s', async (job) => {
    const stage = await stageProject();
    await scenarios[job as JobName](stage);
    stage.driver.failNext(method, new Error('the machine said no'), 2);
    await drain(test.core, stage.driver);
    await expectTruth(stage.driver);
    await expectNothingLeft(stage.driver);
  });
});

describe('a driver that never recovers', () => {
  it.each(methods)('%s: the operation ends in error and says why', async (method) => {
    const stage = await stageProject();
    await scenarios[method === 'createBranch' ? 'create_branch' : 'apply_config'](stage);
    stage.driver.failNext(method, new Error('the machine said no'), 1_000);
    await test.core.database.sql`update operations set deadline_at = now() where finished_at is null`;
    await drain(test.core, stage.driver);
    const failed = await test.core.database.sql<
      { error: string }[]
    >`select error from operations where status = 'error'`;
    for (const { error } of failed) expect(error).toMatch(/the machine said no|no data|too long/);
    stage.driver.failNext(method, new Error(''), 0);
    await expectNothingLeft(stage.driver);
  });
});

describe('deletions in a row', () => {
  it('of a compute and at once of its branch leave nothing', async () => {
    const stage = await stageProject();
    const { branch, endpoints } = await addBranch(stage.made);
    await drain(test.core, stage.driver);
    const { id: projectId } = stage.made.project;
    for (const { id } of endpoints) await command(test, (scope) => deleteEndpoint(scope, test.caller, projectId, id));
    await command(test, (scope) => deleteBranch(scope, test.caller, projectId, branch.id));
    await drain(test.core, stage.driver);
    expect([...stage.driver.branches.keys()]).toEqual([stage.made.branch.id]);
    expect([...stage.driver.computes.keys()]).toEqual([stage.made.endpoint.id]);
  });

  it('of a branch that is still being copied wakes its parent again', async () => {
    const stage = await stageProject();
    const { branch } = await addBranch(stage.made);
    const { registry } = withStep('create_branch', 'stop_parent', (original) => async (context) => {
      const result = await original(context);
      await command(test, (scope) => deleteBranch(scope, test.caller, stage.made.project.id, branch.id));
      return result;
    });
    await drain(test.core, stage.driver, registry);
    await expectTruth(stage.driver);
    expect(stage.driver.computes.get(stage.made.endpoint.id)?.process).not.toBeNull();
    expect([...stage.driver.branches.keys()]).toEqual([stage.made.branch.id]);
  });
});
