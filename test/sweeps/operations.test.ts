/**
 * Every job, every step, every accident, over the registry: a new job or step is swept by being there. After each
 * accident every operation has come to an end, and deleting the project leaves the driver's world empty. Several tests
 * run at a time, each with a system database of its own: most of a sweep is to wait for the database's answers.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FakeDriver, type FakeMethod } from '../../src/compute/fake/fake-driver.ts';
import type { FakeWorld } from '../../src/compute/fake/world.ts';
import { NoSuchMomentError } from '../../src/compute/interface/driver.ts';
import { beginIntegration } from '../../src/core/auth-integration.ts';
import { deleteBranch } from '../../src/core/branch.ts';
import { createBranch } from '../../src/core/branch-create.ts';
import { restoreBranch } from '../../src/core/branch-restore.ts';
import type { Core } from '../../src/core/context.ts';
import {
  createEndpoint,
  deleteEndpoint,
  type EndpointOptions,
  startEndpoint,
  suspendEndpoint,
} from '../../src/core/endpoint.ts';
import { type EndpointChanges, updateEndpointOf } from '../../src/core/endpoint-update.ts';
import { queueLookClosing, requestLook } from '../../src/core/look.ts';
import { isRemoval, type JobName } from '../../src/core/operation.ts';
import { requestPastSchema } from '../../src/core/past-schema.ts';
import { deleteProject, updateProjectOf } from '../../src/core/project.ts';
import type { CreatedProject } from '../../src/core/project-create.ts';
import { admitProject } from '../../src/core/project-restore.ts';
import { purgeBranch, purgeProject, recoverBranch, recoverProject } from '../../src/core/recovery.ts';
import { createRole } from '../../src/core/role.ts';
import { createSnapshot, deleteSnapshot } from '../../src/core/snapshot.ts';
import { finalizeRestore, restoreSnapshot } from '../../src/core/snapshot-restore.ts';
import { chooseIds } from '../../src/core/stored-project.ts';
import { recordDelivery } from '../../src/db/deliveries.ts';
import { updateHistory } from '../../src/db/histories.ts';
import { selectProjectRows } from '../../src/db/project-rows.ts';
import type { BranchId, EndpointId, ProjectId, SnapshotId } from '../../src/lib/ids.ts';
import { createLogger } from '../../src/lib/log.ts';
import { buildVerifier } from '../../src/lib/scram-verifier.ts';
import { jobRegistry } from '../../src/operations/registry.ts';
import type { Job, Step } from '../../src/operations/step.ts';
import { deletedThings } from '../../src/reconcilers/deleted-things.ts';
import { looks } from '../../src/reconcilers/looks.ts';
import { lostComputes } from '../../src/reconcilers/lost-computes.ts';
import { providerLeftovers } from '../../src/reconcilers/provider-leftovers.ts';
import { command, makeProject } from '../helpers/commands.ts';
import { makeCore, type TestCore } from '../helpers/core.ts';
import { drain as drainQueue } from '../helpers/drain.ts';
import { KeptRows } from '../helpers/kept-rows.ts';
import { testProviders } from '../helpers/providers.ts';
import { type StandIn, startStandIn } from '../helpers/stand-in-provider.ts';

const log = createLogger({ level: 'silent', process: 'sweep' });

/** What one test works on, until the next takes it over. */
interface Lane {
  readonly test: TestCore;
  readonly standIn: StandIn;
  readonly kept: KeptRows;
  /** A project that is up, whose rows are kept. */
  staged?: { readonly made: CreatedProject; readonly held: FakeWorld };
}

const opened: Lane[] = [];
const free: Lane[] = [];
const laneOfTest = new AsyncLocalStorage<Lane>();

async function openLane(): Promise<Lane> {
  const test = await makeCore();
  const lane = { test, standIn: await startStandIn(), kept: await KeptRows.open(test.core.database.sql) };
  opened.push(lane);
  return lane;
}

/** As the body of a concurrent test; the others, which run alone, are all in the first lane. */
async function inLane(work: () => Promise<void>): Promise<void> {
  const lane = free.pop() ?? (await openLane());
  await laneOfTest.run(lane, work).finally(() => free.push(lane));
}

function laneNow(): Lane {
  const [first] = opened;
  const lane = laneOfTest.getStore() ?? first;
  if (lane === undefined) throw new Error('BUG: no lane was opened');
  return lane;
}

const test: Pick<TestCore, 'core' | 'caller'> = {
  get core() {
    return laneNow().test.core;
  },
  get caller() {
    return laneNow().test.caller;
  },
};
const standIn = () => laneNow().standIn;

beforeAll(async () => {
  free.push(await openLane());
});
afterAll(async () => {
  for (const lane of opened) {
    await lane.standIn.close();
    await lane.test.close();
  }
  // Otherwise every promise of the files behind this one in its process would be followed too.
  laneOfTest.disable();
});

const drain = (core: Core, driver: FakeDriver, registry?: Registry) =>
  drainQueue(core, driver, registry, testProviders(standIn()));

interface Stage {
  readonly driver: FakeDriver;
  readonly made: CreatedProject;
}

type Scenario = (stage: Stage) => Promise<unknown>;

/** Further ways into a job, for steps that its first scenario does not come by. */
const otherScenarios: Partial<Record<JobName, readonly Scenario[]>> = {
  open_look: [
    // The password was changed since.
    withPast((made, timestamp) => look(made, timestamp, buildVerifier('another'))),
    withPast(async (made, timestamp, driver) => {
      await look(made, timestamp);
      driver.failNext('createBranch', new NoSuchMomentError('gone'));
    }),
  ],
  read_schema: [
    withPast((made, timestamp) => readPast(made, 'no_such_database', timestamp)),
    // The history does not have it after all.
    withPast(async (made, timestamp, driver) => {
      await readPast(made, 'neondb', timestamp);
      driver.failNext('createBranch', new NoSuchMomentError('gone'));
    }),
  ],
  start_compute: [
    ({ made }) => addReplica(made),
    // Its primary must be woken first.
    async ({ driver, made }) => {
      await suspend(made);
      await drain(test.core, driver);
      await addReplica(made);
    },
  ],
  suspend_compute: [
    withReplica((made, replica) => suspend(made, replica)),
    // What was deleted keeps its data, and its computes sleep.
    withReplica((made) => removeProject(made)),
    async (stage) => {
      const branchId = await deleteNewBranch(stage);
      await command(test, (scope) => recoverBranch(scope, test.caller, stage.made.project.id, branchId));
    },
    async ({ made }) => {
      await removeProject(made);
      await command(test, (scope) => recoverProject(scope, test.caller, made.project.id));
    },
  ],
  suspend_and_remove_compute: [withReplica((made, replica) => removeEndpoint(made, replica))],
  remove_compute: [
    withReplica(async (made, replica, driver) => {
      await suspend(made, replica);
      await drain(test.core, driver);
      await removeEndpoint(made, replica);
    }),
  ],
  create_branch: [
    withReplication((made) => addBranch(made)),
    withPast((made, parentTimestamp) =>
      command(test, (scope) =>
        createBranch(scope, test.caller, made.project.id, { parentTimestamp, annotation: {}, endpoints: [] }),
      ),
    ),
    ({ made }) =>
      command(test, (scope) =>
        createBranch(scope, test.caller, made.project.id, {
          initSource: 'schema-only',
          annotation: {},
          endpoints: [{ type: 'read_write' }],
        }),
      ),
  ],
  restore_branch: [
    withPast(async (made, sourceTimestamp) => {
      const address = { projectId: made.project.id, branchId: made.branch.id, sourceId: made.branch.id };
      const input = { ...address, preserveUnderName: `kept ${randomUUID()}`, sourceTimestamp };
      await command(test, (scope) => restoreBranch(scope, test.caller, input));
    }),
    withReplication(async (made, driver) => {
      const { branch } = await addBranch(made);
      await drain(test.core, driver);
      await restore(made, branch.id, made.branch.id, `kept ${randomUUID()}`);
    }),
    // A root that has a child and a replica, from that child, keeping what it has.
    withReplica(async (made, _, driver) => {
      const { branch } = await addBranch(made);
      await drain(test.core, driver);
      await restore(made, made.branch.id, branch.id, `kept ${randomUUID()}`);
    }),
    // Everybody sleeps.
    async ({ driver, made }) => {
      const { branch } = await addBranch(made, []);
      await suspend(made);
      await drain(test.core, driver);
      await restore(made, branch.id, made.branch.id, `kept ${randomUUID()}`);
    },
  ],
  receive_data: [
    async ({ made }) => {
      for (const { operationId } of await bringCopy(made)) {
        await command(test, (scope) => recordDelivery(scope.tx, operationId, { receipt: { method: 'copy' } }));
      }
    },
    async ({ driver, made }) => {
      await readySnapshot(made, driver);
      for (const { operationId } of await bringCopy(made)) {
        await command(test, (scope) => recordDelivery(scope.tx, operationId, { failure: 'the store has no data' }));
      }
    },
  ],
  create_snapshot: [
    // Of a branch that sleeps, and is deleted before the snapshot is taken.
    async ({ driver, made }) => {
      const { branch } = await addBranch(made, []);
      await drain(test.core, driver);
      await takeSnapshot(made, branch.id);
      await command(test, (scope) => deleteBranch(scope, test.caller, made.project.id, branch.id));
    },
    // Deleted before it is taken.
    async ({ made }) => removeSnapshot(made, (await takeSnapshot(made)).snapshot.id),
  ],
  restore_snapshot: [
    withReplication(async (made, driver) => restoreTo(made, await readySnapshot(made, driver), false)),
    // The snapshot is still to be taken, and deleted after the restore.
    async ({ made }) => {
      const { snapshot } = await takeSnapshot(made);
      await restoreTo(made, snapshot.id, true);
    },
  ],
  finalize_restore: [
    // In two steps, with a replica that moves and a compute of its own that gives its place up.
    withReplica(async (made, _, driver) => {
      const { branch, endpoints } = await restoreTo(made, await readySnapshot(made, driver), false);
      for (const { id } of endpoints) {
        await command(test, (scope) => startEndpoint(scope, test.caller, made.project.id, id));
      }
      await drain(test.core, driver);
      await finalize(made, branch.id);
    }),
    // Everybody sleeps.
    async ({ driver, made }) => {
      await suspend(made);
      const { branch } = await restoreTo(made, await readySnapshot(made, driver), false);
      await drain(test.core, driver);
      await finalize(made, branch.id);
    },
  ],
  delete_timeline: [
    async ({ driver, made }) => {
      const { branch } = await addBranch(made, [{ type: 'read_write' }, { type: 'read_only' }]);
      await drain(test.core, driver);
      expect(driver.replicas.size).toBe(1);
      await command(test, (scope) => deleteBranch(scope, test.caller, made.project.id, branch.id, true));
    },
    // Purged while its compute is still being stopped.
    async (stage) => {
      const branchId = await deleteNewBranch(stage);
      await command(test, (scope) => purgeBranch(scope, test.caller, stage.made.project.id, branchId));
    },
  ],
  apply_config: [
    withReplication(async () => undefined),
    ({ made }) => change(made, { maxCu: 2 }),
    withReplica((made, replica) => change(made, { maxCu: 2 }, replica)),
    ({ made }) => change(made, { settings: { pg_settings: { work_mem: '8MB' } } }),
    async ({ driver, made }) => {
      const { branch } = await addBranch(made, []);
      await drain(test.core, driver);
      await change(made, { branchId: branch.id });
    },
    withReplica(async (made, replica, driver) => {
      const { branch } = await addBranch(made);
      await drain(test.core, driver);
      await change(made, { branchId: branch.id }, replica);
    }),
  ],
};

/** What brings each job into the queue, on a project that is up. */
const scenarios: Record<JobName, Scenario> = {
  create_timeline: () => makeProject(test, 'another'),
  start_compute: ({ driver, made }) => loseCompute(driver, made),
  check_availability: ({ driver, made }) => loseCompute(driver, made),
  create_auth_integration: ({ made }) => addIntegration(made),
  suspend_compute: ({ made }) => suspend(made),
  ensure_asleep: async ({ driver, made }) => {
    await suspend(made);
    await drain(test.core, driver);
    await removeProject(made);
  },
  apply_config: async ({ driver, made }) => {
    await suspend(made);
    await drain(test.core, driver);
    await command(test, (scope) =>
      createRole(scope, test.caller, { ...addressOf(made), name: `r${randomUUID()}`, noLogin: false }),
    );
  },
  apply_storage_config: ({ made }) =>
    command(test, (scope) => updateProjectOf(scope, test.caller, made.project.id, { historyRetentionSeconds: 3_600 })),
  read_schema: withPast((made, timestamp) => readPast(made, 'neondb', timestamp)),
  open_look: withPast((made, timestamp) => look(made, timestamp)),
  close_look: withPast(async (made, timestamp, driver) => {
    const opened = await look(made, timestamp);
    await drain(test.core, driver);
    await command(test, (scope) => queueLookClosing(scope, opened));
  }),
  create_branch: ({ made }) => addBranch(made),
  restore_branch: async ({ driver, made }) => {
    const { branch } = await addBranch(made);
    await drain(test.core, driver);
    await restore(made, branch.id, made.branch.id);
  },
  discard_copy: async ({ driver, made }) => {
    const { branch } = await addBranch(made);
    await drain(test.core, driver);
    await restore(made, branch.id, made.branch.id);
    await test.core.database.sql`update operations set deadline_at = now() where job = 'restore_branch'`;
    driver.failNext('suspend', new Error('the machine said no'), 1);
  },
  create_snapshot: ({ made }) => takeSnapshot(made),
  restore_snapshot: async ({ driver, made }) => restoreTo(made, await readySnapshot(made, driver), false),
  finalize_restore: async ({ driver, made }) => restoreTo(made, await readySnapshot(made, driver), true),
  // The process that was to bring the data has died.
  receive_data: ({ made }) => bringCopy(made),
  delete_snapshot: async ({ driver, made }) => removeSnapshot(made, await readySnapshot(made, driver)),
  delete_timeline: async (stage) => {
    const branchId = await deleteNewBranch(stage);
    await drain(test.core, stage.driver);
    await command(test, (scope) => purgeBranch(scope, test.caller, stage.made.project.id, branchId));
  },
  hide_branch: (stage) => deleteNewBranch(stage),
  remove_compute: async ({ driver, made }) => {
    await suspend(made);
    await drain(test.core, driver);
    await removeEndpoint(made);
  },
  suspend_and_remove_compute: ({ made }) => removeEndpoint(made),
  delete_project: async ({ made }) => {
    await removeProject(made);
    await purge(made.project.id);
  },
};

/** On a project whose branch has a history, at a moment of it. */
function withPast(more: (made: CreatedProject, moment: string, driver: FakeDriver) => Promise<unknown>): Scenario {
  return async ({ driver, made }) => {
    const { projectId, branchId } = addressOf(made);
    const ref = { projectId, branchId, tenantUid: null };
    const history = await driver.keepHistory(ref, { retentionSeconds: 3_600 });
    await updateHistory(test.core.database.sql, branchId, history);
    await more(made, history?.until?.at ?? '', driver);
  };
}

/** Turns logical replication on, and does more in that project. */
function withReplication(more: (made: CreatedProject, driver: FakeDriver) => Promise<unknown>): Scenario {
  return async ({ driver, made }) => {
    const settings = { enable_logical_replication: true };
    await command(test, (scope) => updateProjectOf(scope, test.caller, made.project.id, { settings }));
    await more(made, driver);
  };
}

/** On a project that has a read replica too. */
function withReplica(
  act: (made: CreatedProject, replica: EndpointId, driver: FakeDriver) => Promise<unknown>,
): Scenario {
  return async ({ driver, made }) => {
    const { endpoint } = await addReplica(made);
    await drain(test.core, driver);
    await act(made, endpoint.id, driver);
  };
}

const addressOf = (made: CreatedProject) => ({ projectId: made.project.id, branchId: made.branch.id });
const suspend = (made: CreatedProject, id = made.endpoint.id) =>
  command(test, (scope) => suspendEndpoint(scope, test.caller, made.project.id, id));
const removeEndpoint = (made: CreatedProject, id = made.endpoint.id) =>
  command(test, (scope) => deleteEndpoint(scope, test.caller, made.project.id, id));
const removeProject = (made: CreatedProject) =>
  command(test, (scope) => deleteProject(scope, test.caller, made.project.id));
const addBranch = (made: CreatedProject, endpoints: readonly EndpointOptions[] = [{ type: 'read_write' }]) =>
  command(test, (scope) => createBranch(scope, test.caller, made.project.id, { annotation: {}, endpoints }));
const restore = (made: CreatedProject, branchId: BranchId, sourceId: BranchId, name: string | null = null) =>
  command(test, (scope) =>
    restoreBranch(scope, test.caller, { projectId: made.project.id, branchId, sourceId, preserveUnderName: name }),
  );
const takeSnapshot = (made: CreatedProject, branchId = made.branch.id) =>
  command(test, (scope) => createSnapshot(scope, test.caller, { projectId: made.project.id, branchId }, {}));
const removeSnapshot = ({ project }: CreatedProject, snapshotId: SnapshotId) =>
  command(test, (scope) => deleteSnapshot(scope, test.caller, { projectId: project.id, snapshotId }));
const restoreTo = ({ project }: CreatedProject, snapshotId: SnapshotId, finalize: boolean) =>
  command(test, (scope) => restoreSnapshot(scope, test.caller, { projectId: project.id, snapshotId }, { finalize }));
const finalize = ({ project }: CreatedProject, branchId: BranchId) =>
  command(test, (scope) => finalizeRestore(scope, test.caller, { projectId: project.id, branchId }, null));
const readPast = (made: CreatedProject, database: string, timestamp: string) =>
  command(test, (scope) => {
    const fields = { lsn: 'lsn', timestamp: 'timestamp' };
    return requestPastSchema(scope, test.caller, addressOf(made), { database, moment: { timestamp }, fields });
  });
const look = (made: CreatedProject, timestamp: string, verifier = '') =>
  command(test, (scope) =>
    requestLook(scope, { name: made.branch.id, moment: { timestamp }, role: made.role.name, verifier }),
  );
const addReplica = ({ project, branch }: CreatedProject) =>
  command(test, (scope) => createEndpoint(scope, test.caller, project.id, { type: 'read_only', branchId: branch.id }));
const addIntegration = ({ project, branch }: CreatedProject) =>
  command(test, (scope) => {
    const initial = { databaseName: null, roleName: null, providerUrl: standIn().url };
    return beginIntegration(scope, test.caller, { projectId: project.id, branchId: branch.id, ...initial });
  });
const change = (made: CreatedProject, changes: EndpointChanges, endpointId = made.endpoint.id) =>
  command(test, (scope) => updateEndpointOf(scope, test.caller, { projectId: made.project.id, endpointId }, changes));

const purge = (id: ProjectId) => command(test, (scope) => purgeProject(scope, test.caller, id));

async function deleteNewBranch({ driver, made }: Stage): Promise<BranchId> {
  const { branch } = await addBranch(made);
  await drain(test.core, driver);
  await command(test, (scope) => deleteBranch(scope, test.caller, made.project.id, branch.id));
  return branch.id;
}

/** A second project, as a restore from a backup makes it. */
async function bringCopy(made: CreatedProject) {
  const rows = await selectProjectRows(test.core.database.sql, made.project.id);
  const origin = { from: 'file:///store', installationId: 'elsewhere', at: null };
  const options = { ids: chooseIds(rows, true), asNew: true, organizationId: null, origin };
  const stored = { rows, box: test.core.box, until: null };
  return (await command(test, (scope) => admitProject(scope, stored, options))).awaited;
}

async function readySnapshot(made: CreatedProject, driver: FakeDriver): Promise<SnapshotId> {
  const { snapshot } = await takeSnapshot(made);
  await drain(test.core, driver);
  return snapshot.id;
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
  await test.core.database.sql`delete from auth_leftovers`;
  standIn().projects.clear();
  const lane = laneNow();
  lane.staged ??= await makeStaged(lane);
  const { made, held } = lane.staged;
  await lane.kept.putBack();
  return { driver: new FakeDriver({ world: structuredClone(held) }), made };
}

/** Made once for each lane: all tests begin with a project that is up. */
async function makeStaged({ kept }: Lane): Promise<NonNullable<Lane['staged']>> {
  const driver = new FakeDriver();
  const made = await makeProject(test);
  await drain(test.core, driver);
  await kept.keep();
  const { branches, computes, replicas } = driver;
  return { made, held: structuredClone({ branches, computes, replicas }) };
}

/** Deletes and purges every project and asserts that nothing is left of any of them. */
async function expectNothingLeft(driver: FakeDriver): Promise<void> {
  const { sql } = test.core.database;
  const unsettled = await sql`
    select job, step, status, error from operations where status not in ('finished', 'error', 'cancelled', 'skipped')`;
  expect([...unsettled]).toEqual([]);
  const projects = await sql<{ id: ProjectId }[]>`select id from projects where deleting_at is null`;
  for (const { id } of projects) await command(test, (scope) => deleteProject(scope, test.caller, id));
  await drain(test.core, driver);
  for (const { turn } of [deletedThings, looks]) await turn({ core: test.core, driver, log });
  await drain(test.core, driver);
  const awake = [...driver.computes.values()].filter(({ process }) => process !== null);
  expect(awake).toEqual([]);
  const deleted = await sql<{ id: ProjectId }[]>`select id from projects where recoverable_until is not null`;
  for (const { id } of deleted) await purge(id);
  await drain(test.core, driver);
  expect([...driver.branches.keys(), ...driver.computes.keys(), ...driver.replicas.keys()]).toEqual([]);
  await sql`update auth_leftovers set retry_at = now()`;
  await providerLeftovers(testProviders(standIn())).turn({ core: test.core, driver, log });
  expect([...standIn().projects.keys()]).toEqual([]);
  const [rows] = await sql`
    select (select count(*) from projects) + (select count(*) from branches) + (select count(*) from endpoints)
      + (select count(*) from operations) + (select count(*) from snapshots) as count`;
  expect(rows?.count).toBe(0);
}

/** What the API says is what the driver's world holds. */
async function expectTruth(driver: FakeDriver): Promise<void> {
  const rows = await test.core.database.sql<{ id: string; currentState: string; pendingState: string | null }[]>`
    select id, current_state, pending_state from endpoints where deleting_at is null or recoverable_until is not null`;
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

const everyScenario = Object.entries(scenarios).flatMap(([job, scenario]) =>
  [scenario, ...(otherScenarios[job as JobName] ?? [])].map((way, index) => ({ job, index, way })),
);

const everyStep = Object.entries(jobRegistry).flatMap(([job, { steps }]) =>
  Object.keys(steps).map((step) => [job, step]),
);

/**
 * All of them is every accident at every step, on every way that comes by the step. Without that word each step meets
 * every accident on one way, and each way meets one accident at every step.
 */
const isWhole = process.env.CATNAP_TEST_ACCIDENTS === 'all';

/** The ways that one of several accidents is tried on; all accidents together have tried each of them. */
function shareOf<Way>(ways: readonly Way[], accident: number, accidents: number): readonly Way[] {
  if (isWhole) return ways;
  const own = ways.filter((_, index) => index % accidents === accident % accidents);
  return own.length > 0 ? own : ways.slice(accident % ways.length).slice(0, 1);
}

describe.each(Object.entries(accidents).map(([name, accident], index) => ({ name, accident, index })))(
  '$name:',
  ({ name, accident, index }) => {
    // A deletion never cancels a removal.
    const swept = everyStep.filter(([job]) => !(name.startsWith('cancelled') && isRemoval(job as JobName)));
    it.concurrent.each(swept)('%s, step %s', (job, step) =>
      inLane(async () => {
        let reached = 0;
        const ways = await waysBy(job as JobName, step ?? '');
        for (const way of shareOf(ways, index, Object.keys(accidents).length)) {
          const stage = await stageProject();
          const { registry, used } = withStep(job ?? '', step ?? '', accident);
          await way(stage);
          await drain(test.core, stage.driver, registry);
          reached += used();
          if (!name.startsWith('cancelled')) await expectTruth(stage.driver);
          await expectNothingLeft(stage.driver);
        }
        expect(reached, 'the sweep never reached this step').toBeGreaterThan(0);
      }),
    );
  },
);

async function waysBy(job: JobName, step: string): Promise<readonly Scenario[]> {
  const ways: Scenario[] = [];
  for (const scenario of everyScenario.filter((one) => one.job === job)) {
    if ((await rehearse(scenario)).steps.has(step)) ways.push(scenario.way);
  }
  return ways;
}

/** What a scenario comes by when nothing goes wrong. */
interface Rehearsal {
  /** Of its job. */
  readonly steps: ReadonlySet<string>;
  /** Of the driver, by the jobs of the scenario itself. */
  readonly own: ReadonlySet<FakeMethod>;
  /** By the deletion of everything afterwards. */
  readonly removing: ReadonlySet<FakeMethod>;
}

const rehearsals = new Map<Scenario, Promise<Rehearsal>>();

/** In the lane of whoever asks first, and waits for it like the others. */
function rehearse({ job, way }: { readonly job: string; readonly way: Scenario }): Promise<Rehearsal> {
  const begun = rehearsals.get(way) ?? runUndisturbed(job as JobName, way);
  rehearsals.set(way, begun);
  return begun;
}

async function runUndisturbed(job: JobName, way: Scenario): Promise<Rehearsal> {
  const steps = new Set<string>();
  const watched = Object.entries(jobRegistry[job].steps).map(([name, step]): [string, Step] => [
    name,
    (context) => {
      steps.add(name);
      return step(context);
    },
  ]);
  const stage = await stageProject();
  const { calls } = stage.driver;
  await way(stage);
  const first = calls.length;
  const steppedBy = { ...jobRegistry[job], steps: Object.fromEntries(watched) };
  await drain(test.core, stage.driver, { ...jobRegistry, [job]: steppedBy });
  const end = calls.length;
  await expectNothingLeft(stage.driver);
  const namesOf = (part: typeof calls) => new Set(part.map(({ method }) => method));
  return { steps, own: namesOf(calls.slice(first, end)), removing: namesOf(calls.slice(end)) };
}

/**
 * What operations ask of the driver. Every method has its line: one that is `needed` fails the operation that calls
 * it, one that is `optional` does not, and one that is `unused` is called by reconcilers and others alone.
 */
const uses: Readonly<Record<FakeMethod, 'needed' | 'optional' | 'unused'>> = {
  createBranch: 'needed',
  keepHistory: 'needed',
  removeBranch: 'needed',
  replaceBranch: 'needed',
  emptyBranch: 'needed',
  detachBranch: 'needed',
  buildReplica: 'needed',
  start: 'needed',
  observe: 'needed',
  observeSize: 'needed',
  settle: 'needed',
  suspend: 'needed',
  removeCompute: 'needed',
  removeProject: 'needed',
  readCatalog: 'needed',
  configure: 'needed',
  reload: 'needed',
  // Why users could not be copied stands in the integration, which the reconciler tries again.
  syncUsers: 'optional',
  // Only makes a wake faster.
  expectClients: 'optional',
  // Only for the accounts, which do without the last seconds.
  sample: 'optional',
  measure: 'unused',
  observeReplica: 'unused',
  observeWork: 'unused',
  observeSlots: 'unused',
  endWriters: 'unused',
  observeRoom: 'unused',
  readLog: 'unused',
  resize: 'unused',
  checkSettings: 'unused',
  listExtensions: 'unused',
  dropUsers: 'unused',
  list: 'unused',
};

const methodsThatAre = (...wanted: readonly string[]) =>
  (Object.keys(uses) as FakeMethod[]).filter((method) => wanted.includes(uses[method])).sort();

function shareOfRemoval(methods: readonly FakeMethod[], place: number): readonly FakeMethod[] {
  return isWhole ? methods : methods.slice(place % methods.length).slice(0, 1);
}

describe('a driver that fails', () => {
  const swept = new Set<FakeMethod>();

  it.concurrent.each(everyScenario)('during $job, way $index, in whatever the job asks of it', (scenario) =>
    inLane(async () => {
      const { way } = scenario;
      const { own, removing } = await rehearse(scenario);
      const place = everyScenario.indexOf(scenario);
      // Every way ends with the same deletion: one of its failures is tried after each.
      for (const method of new Set([...own, ...shareOfRemoval([...removing], place)])) {
        swept.add(method);
        const stage = await stageProject();
        await way(stage);
        stage.driver.failNext(method, new Error('the machine said no'), 2);
        await drain(test.core, stage.driver);
        await expectTruth(stage.driver);
        await expectNothingLeft(stage.driver);
      }
    }),
  );

  it('fails in every one of the methods that operations call, and they call no other', () => {
    expect([...swept].sort()).toEqual(methodsThatAre('needed', 'optional'));
  });
});

describe('a driver that never recovers', () => {
  it.concurrent.each(methodsThatAre('needed'))('%s: the operation ends in error and says why', (method) =>
    inLane(async () => {
      const { stage, errors } = await failForGood(method);
      expect(errors).toContainEqual(expect.stringContaining('the machine said no'));
      // Operations behind it find no data, wait in vain, or cannot delete a branch that still has its compute.
      const reasons = /the machine said no|no data|too long|"endpoints_branch_id_fkey"/;
      for (const error of errors) expect(error).toMatch(reasons);
      // The deletion of a project that was given up is not taken up again by itself.
      await test.core.database.sql`update projects set deleting_at = null, recoverable_until = null`;
      await expectNothingLeft(stage.driver);
    }),
  );

  it.concurrent.each(methodsThatAre('optional'))('%s: the operation does without', (method) =>
    inLane(async () => {
      const { stage, errors } = await failForGood(method);
      expect(errors).toEqual([]);
      await expectTruth(stage.driver);
      await expectNothingLeft(stage.driver);
    }),
  );
});

/** One scenario whose own jobs call the method, which fails until they have all ended, each at its first deadline. */
async function failForGood(method: FakeMethod): Promise<{ stage: Stage; errors: readonly string[] }> {
  const way = await findWayThatCalls(method);
  const stage = await stageProject();
  await way(stage);
  const before = stage.driver.calls.length;
  stage.driver.failNext(method, new Error('the machine said no'), 1_000);
  await drain(test.core, stage.driver, withoutPatience);
  stage.driver.failNext(method, new Error(''), 0);
  expect(stage.driver.calls.slice(before).map((call) => call.method)).toContain(method);
  const failed = await test.core.database.sql<{ error: string }[]>`select error from operations where status = 'error'`;
  return { stage, errors: failed.map(({ error }) => error) };
}

/** A start goes on without a change that the server refuses; the operation that was queued for the change does not. */
const jobThatNeeds: Partial<Record<FakeMethod, JobName>> = { configure: 'apply_config' };

async function findWayThatCalls(method: FakeMethod): Promise<Scenario> {
  const ways = everyScenario.filter(({ job }) => job === (jobThatNeeds[method] ?? job));
  for (const scenario of ways) if ((await rehearse(scenario)).own.has(method)) return scenario.way;
  throw new Error(`no scenario calls ${method}`);
}

/** The registry with every operation past its deadline as soon as it runs, so that its first failure ends it. */
const withoutPatience: Registry = Object.fromEntries(
  Object.entries(jobRegistry).map(([name, job]) => {
    const steps = Object.entries(job.steps).map(([step, run]): [string, Step] => [
      step,
      async (context) => {
        await test.core.database.sql`update operations set deadline_at = now() where finished_at is null`;
        return run(context);
      },
    ]);
    return [name, { ...job, steps: Object.fromEntries(steps) }];
  }),
);

describe('deletions in a row', () => {
  it('of a compute and at once of its branch leave nothing', async () => {
    const stage = await stageProject();
    const { branch, endpoints } = await addBranch(stage.made);
    await drain(test.core, stage.driver);
    const { id: projectId } = stage.made.project;
    for (const { id } of endpoints) await command(test, (scope) => deleteEndpoint(scope, test.caller, projectId, id));
    await command(test, (scope) => deleteBranch(scope, test.caller, projectId, branch.id, true));
    await drain(test.core, stage.driver);
    expect([...stage.driver.branches.keys()]).toEqual([stage.made.branch.id]);
    expect([...stage.driver.computes.keys()]).toEqual([stage.made.endpoint.id]);
  });

  it('of a branch that is still being copied leave its parent awake', async () => {
    const stage = await stageProject();
    const { pid } = stage.driver.computes.get(stage.made.endpoint.id)?.process ?? {};
    const { branch } = await addBranch(stage.made);
    const { registry } = withStep('create_branch', 'copy', (original) => async (context) => {
      const result = await original(context);
      await command(test, (scope) => deleteBranch(scope, test.caller, stage.made.project.id, branch.id));
      return result;
    });
    await drain(test.core, stage.driver, registry);
    await expectTruth(stage.driver);
    expect(stage.driver.computes.get(stage.made.endpoint.id)?.process?.pid).toBe(pid);
    expect([...stage.driver.branches.keys()]).toEqual([stage.made.branch.id]);
  });
});

describe('branches of a parent that is awake', () => {
  it('are copied while it serves, and keep it from a suspend until they are', async () => {
    const stage = await stageProject();
    const { pid } = stage.driver.computes.get(stage.made.endpoint.id)?.process ?? {};
    const first = await addBranch(stage.made);
    const second = await addBranch(stage.made);
    const { operations } = await suspend(stage.made);
    const statusOf = ([operation]: readonly { status: string }[]) => operation?.status;
    expect([first, second].map((made) => statusOf(made.operations))).toEqual(['running', 'running']);
    expect(statusOf(operations)).toBe('scheduling');
    const { registry } = withStep('create_branch', 'copy', (original) => (context) => {
      expect(stage.driver.computes.get(stage.made.endpoint.id)?.process?.pid).toBe(pid);
      return original(context);
    });
    await drain(test.core, stage.driver, registry);
    expect(stage.driver.branches.size).toBe(3);
    await expectTruth(stage.driver);
  });
});

describe('a read replica', () => {
  it('wakes its primary to be copied from, once, and starts without it later', async () => {
    const stage = await stageProject();
    const { driver, made } = stage;
    const runs = (id: string) => driver.computes.get(id)?.process != null;
    await suspend(made);
    await drain(test.core, driver);
    const { endpoint, operations } = await addReplica(made);
    expect(operations.map(({ action, status }) => [action, status])).toEqual([['start_compute', 'running']]);
    await drain(test.core, driver);
    expect([runs(made.endpoint.id), runs(endpoint.id)]).toEqual([true, true]);
    await suspend(made);
    await suspend(made, endpoint.id);
    await drain(test.core, driver);
    await command(test, (scope) => startEndpoint(scope, test.caller, made.project.id, endpoint.id));
    await drain(test.core, driver);
    expect([runs(made.endpoint.id), runs(endpoint.id)]).toEqual([false, true]);
    await expectTruth(driver);
    await expectNothingLeft(driver);
  });

  it('does not wait for another one, and holds its primary back only while it works', async () => {
    const stage = await stageProject();
    const statusOf = ({ operations: [operation] }: { operations: readonly { status: string }[] }) => operation?.status;
    expect(statusOf(await addReplica(stage.made))).toBe('running');
    expect(statusOf(await addReplica(stage.made))).toBe('running');
    expect(statusOf(await suspend(stage.made))).toBe('scheduling');
    await drain(test.core, stage.driver);
    await expectTruth(stage.driver);
  });

  it('serves what it has when its primary is deleted, and no other can be made then', async () => {
    const stage = await stageProject();
    const { driver, made } = stage;
    const first = await addReplica(made);
    await drain(test.core, driver);
    await removeEndpoint(made);
    await drain(test.core, driver);
    expect(driver.computes.get(first.endpoint.id)?.process).not.toBeNull();
    await expect(addReplica(made)).rejects.toThrow(/has none/);
    await expectNothingLeft(driver);
  });
});
