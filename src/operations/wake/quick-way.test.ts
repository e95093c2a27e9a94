import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { command, makeProject } from '../../../test/helpers/commands.ts';
import { makeCore, type TestCore } from '../../../test/helpers/core.ts';
import { drain } from '../../../test/helpers/drain.ts';
import { FakeDriver } from '../../compute/fake/fake-driver.ts';
import { queueStart, suspendEndpoint } from '../../core/endpoint.ts';
import { wakePriority } from '../../core/operation.ts';
import { requestWake } from '../../core/wake.ts';
import { lockEndpoint } from '../../db/endpoints.ts';
import { lockProject } from '../../db/projects.ts';
import { jobRegistry } from '../registry.ts';
import { goto, type Job, type Step } from '../step.ts';
import { type AtOnce, raisePlainly, readyAtOnce } from './quick-way.ts';

let made: TestCore;
beforeAll(async () => {
  made = await makeCore();
});
afterAll(() => made.close());

/** A row without what is new in each wake: it matters whether there is a time or a lease, not which. */
function comparable(row: Record<string, unknown> | undefined): Record<string, unknown> {
  const { id, sequence, ...rest } = row ?? {};
  expect(id).toBeDefined();
  const plain = ([name, value]: [string, unknown]) => {
    const isNew = value instanceof Date || (name === 'lease' && value !== null);
    return [name, isNew ? `some ${name}` : value];
  };
  return Object.fromEntries(Object.entries(rest).map(plain));
}

async function stage() {
  const driver = new FakeDriver();
  const { project, branch, endpoint } = await makeProject(made);
  const { core } = made;
  const { sql } = core.database;
  await drain(core, driver);

  /** All that a wake writes, with the generation counted from the one before it. */
  const rows = async (generation: number) => {
    const [endpointRow] = await sql`select * from endpoints where id = ${endpoint.id}`;
    const [operation] = await sql`
      select * from operations where endpoint_id = ${endpoint.id} order by sequence desc limit 1`;
    // How long it was awake before is measured, and differs.
    const [{ usage, ...branchRow } = {}] = await sql`select * from branches where id = ${branch.id}`;
    const { state } = operation ?? {};
    const raisedTo = typeof state?.generation === 'number' ? { generation: state.generation - generation } : {};
    return {
      endpoint: { ...comparable(endpointRow), generation: endpointRow?.generation - generation },
      operation: { ...comparable(operation), state: { ...state, ...raisedTo } },
      branch: comparable(branchRow),
    };
  };

  /** The rows when the start is queued, when its fence is raised, and when its route is open. */
  const wake = async (queue: () => Promise<unknown>, job: Job) => {
    await command(made, (scope) => suspendEndpoint(scope, made.caller, project.id, endpoint.id));
    await drain(core, driver);
    const [before] = await sql`select generation from endpoints where id = ${endpoint.id}`;
    const seen: Record<string, Awaited<ReturnType<typeof rows>>> = {};
    await queue();
    seen.queued = await rows(before?.generation);
    const spawn: Step = async (context) => {
      seen.fenced = await rows(before?.generation);
      return (job.steps.spawn as Step)(context);
    };
    await drain(core, driver, { ...jobRegistry, start_compute: { ...job, steps: { ...job.steps, spawn } } });
    seen.open = await rows(before?.generation);
    return seen;
  };

  const quickly = () => requestWake(core, endpoint.id);
  const plainly = () =>
    command(made, async (scope) => {
      await lockProject(scope.tx, project.id);
      const locked = await lockEndpoint(scope.tx, endpoint.id);
      if (locked === undefined) throw new Error('the endpoint is gone');
      await queueStart(scope, locked, wakePriority);
    });
  return { wake, quickly, plainly };
}

const quickEnds: boolean[] = [];
let plainEnds = 0;

/** The steps as they are, which report whether their quick way succeeded. */
const quickJob: Job = {
  ...jobRegistry.start_compute,
  steps: {
    ...jobRegistry.start_compute.steps,
    open_route: async (context) => {
      const result = await (jobRegistry.start_compute.steps.open_route as Step)(context);
      if (result.kind !== 'done' || result.atOnce === null) throw new Error('the route has no quick way any more');
      const { atOnce } = result;
      const recorded: AtOnce = async (sql, lease) => {
        const isDone = await atOnce(sql, lease);
        quickEnds.push(isDone);
        return isDone;
      };
      return { ...result, atOnce: recorded };
    },
  },
};

/** The same steps, whose outcomes are written in transactions. */
const plainJob: Job = {
  ...quickJob,
  steps: {
    ...quickJob.steps,
    fence: async (context) => {
      const result = await (quickJob.steps.fence as Step)(context);
      if (result.kind !== 'raise') throw new Error('the fence has no quick way any more');
      return goto(result.step, raisePlainly(result));
    },
    open_route: async (context) => {
      const result = await (quickJob.steps.open_route as Step)(context);
      if (result.kind !== 'done') throw new Error('the route does not end the operation any more');
      plainEnds++;
      return { ...result, atOnce: null };
    },
  },
};

test('the quick way of a wake and the plain one leave the same rows', async () => {
  const { wake, quickly, plainly } = await stage();
  const quick = await wake(quickly, quickJob);
  const plain = await wake(plainly, plainJob);
  expect([quickEnds, plainEnds]).toEqual([[true], 1]);
  expect(quick.queued).toEqual(plain.queued);
  expect(quick.queued).toMatchObject({
    endpoint: { currentState: 'idle', pendingState: 'active', generation: 0 },
    operation: { job: 'start_compute', priority: wakePriority, lease: null },
  });
  expect(quick.fenced).toEqual(plain.fenced);
  expect(quick.fenced).toMatchObject({
    endpoint: { generation: 1 },
    operation: { step: 'spawn', state: { generation: 1 }, lease: 'some lease' },
  });
  expect(quick.open).toEqual(plain.open);
  expect(quick.open).toMatchObject({
    endpoint: { currentState: 'active', pendingState: null, generation: 1 },
    operation: { status: 'finished', finishedAt: 'some finishedAt', lease: null, state: {} },
    branch: { catalogKept: false },
  });
});

/** What the creation of a project leaves of its first branch and of the operation that made its data. */
async function rowsOfNew(plain: boolean) {
  const { core } = made;
  const { sql } = core.database;
  const ends: (boolean | null)[] = [];
  const job: Job = {
    ...jobRegistry.create_timeline,
    steps: {
      copy: async (context) => {
        const result = await (jobRegistry.create_timeline.steps.copy as Step)(context);
        if (result.kind !== 'done' || result.atOnce === null) throw new Error('a new branch has no quick way any more');
        const { atOnce } = result;
        const recorded: AtOnce = async (...args) => {
          const isDone = await atOnce(...args);
          ends.push(isDone);
          return isDone;
        };
        return { ...result, atOnce: plain ? null : recorded };
      },
    },
  };
  const { branch, operations } = await makeProject(made);
  await drain(core, new FakeDriver(), { ...jobRegistry, create_timeline: job });
  const [{ projectId, ...branchRow } = {}] = await sql`select * from branches where id = ${branch.id}`;
  const [{ projectId: _, branchId, exclusiveKeys, sharedKeys, ...operation } = {}] = await sql`
    select * from operations where id = ${operations[0]?.id ?? ''}`;
  expect([projectId, branchId]).toEqual([branch.projectId, branch.id]);
  return { ends, branch: comparable(branchRow), operation: comparable(operation) };
}

test('the quick way of a new branch and the plain one leave the same rows', async () => {
  const quick = await rowsOfNew(false);
  const plain = await rowsOfNew(true);
  expect([quick.ends, plain.ends]).toEqual([[true], []]);
  expect({ ...quick, ends: null }).toEqual({ ...plain, ends: null });
  expect(quick).toMatchObject({
    branch: { currentState: 'ready', pendingState: null, stateChangedAt: 'some stateChangedAt' },
    operation: { job: 'create_timeline', status: 'finished', lease: null, state: {} },
  });
});

test('a new branch that is deleted meanwhile, or whose lease is lost, takes the plain way', async () => {
  const { core } = made;
  const { branch, project, operations } = await makeProject(made);
  const { sql } = core.database;
  const [operation] = operations;
  if (operation === undefined) throw new Error('nothing was queued');
  const ready = readyAtOnce(operation, branch.id, {});
  const lease = randomUUID();
  expect(await ready(sql, lease)).toBe(false);
  await sql`update operations set lease = ${lease} where id = ${operation.id}`;
  await command(made, async (scope) => {
    await lockProject(scope.tx, project.id);
    expect(await ready(sql, lease)).toBe(false);
  });
  await sql`update branches set deleting_at = now() where id = ${branch.id}`;
  expect(await ready(sql, lease)).toBe(false);
  await sql`update branches set deleting_at = null where id = ${branch.id}`;
  expect(await ready(sql, lease)).toBe(true);
});
