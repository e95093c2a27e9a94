/**
 * What schedules are played on, one after the other: a system database of its own, connections for each actor, and a
 * clock that only the schedule moves.
 */
import type { Core } from '../../../src/core/context.ts';
import { createProject } from '../../../src/core/project-create.ts';
import type { ProjectId } from '../../../src/lib/ids.ts';
import { command } from '../../helpers/commands.ts';
import { makeCoreOn, type TestCore } from '../../helpers/core.ts';
import { makeDatabase } from '../../helpers/database.ts';
import type { Known } from './commands.ts';
import { type Connections, openConnections, prepareTime } from './gated-database.ts';

export const workerNames = ['w1', 'w2', 'urgent'] as const;
export const clientNames = ['c1', 'c2'] as const;
/** Works off what is left when a schedule comes to its end. */
export const lastWorkerName = 'w0';
export const reconcilerName = 'r1';
const actorNames: readonly string[] = [...workerNames, lastWorkerName, ...clientNames, reconcilerName];

const beginning = Date.UTC(2040, 0, 1);

export class Ground {
  readonly test: TestCore;
  /** For the schedule itself: to move the clock, to take leases away, to look. */
  readonly control: Connections;
  readonly #connections: ReadonlyMap<string, Connections>;
  #nowMs = beginning;

  private constructor(test: TestCore, control: Connections, connections: ReadonlyMap<string, Connections>) {
    this.test = test;
    this.control = control;
    this.#connections = connections;
  }

  static async open(): Promise<Ground> {
    const made = await makeDatabase(2);
    const test = await makeCoreOn(made);
    const control = openConnections(made.options, 'control');
    await prepareTime(control);
    const connections = new Map(actorNames.map((name) => [name, openConnections(made.options, name)]));
    return new Ground(test, control, connections);
  }

  async close(): Promise<void> {
    await Promise.all([this.control, ...this.#connections.values()].map((sql) => sql.end({ timeout: 5 })));
    await this.test.close();
  }

  connectionsOf(name: string): Connections {
    const found = this.#connections.get(name);
    if (found === undefined) throw new Error(`nobody is called ${name}`);
    return found;
  }

  get core(): Core {
    return { ...this.test.core, clock: { now: () => new Date(this.#nowMs) } };
  }

  get nowMs(): number {
    return this.#nowMs;
  }

  async moveClock(toMs: number): Promise<void> {
    this.#nowMs = toMs;
    await this.control`update clock set at = ${new Date(toMs)}`;
  }

  /** Sessions that wait for a lock. A lock that was granted is on record before the session that waited goes on. */
  async countWaiting(): Promise<number> {
    const [row] = await this.control<{ count: number }[]>`
      select count(*)::int from pg_locks where not granted and pid in (
        select pid from pg_stat_get_activity(null) where datid = (
          select oid from pg_database where datname = current_database()))`;
    return row?.count ?? 0;
  }

  /** A new project, whose operations wait in the queue. */
  async prepare(): Promise<Known> {
    await this.control`delete from projects`;
    await this.control`delete from idempotency_keys`;
    await this.moveClock(beginning);
    const input = { name: 'simulated', organizationId: null, endpointDefaults: {}, annotation: {} };
    const { caller } = this.test;
    const made = await command({ core: this.core }, (scope) => createProject(scope, caller, input));
    return newKnown(made);
  }
}

function newKnown(made: Awaited<ReturnType<typeof createProject>>): Known {
  const projectId: ProjectId = made.project.id;
  return {
    projectId,
    ownerName: made.role.name,
    branches: [made.branch.id],
    endpoints: [made.endpoint.id],
    roles: [{ branchId: made.branch.id, name: made.role.name }],
    databases: [],
    snapshots: [],
    promised: new Set([made.branch.id, made.endpoint.id]),
    doubtful: new Set(),
  };
}
