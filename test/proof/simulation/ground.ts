/**
 * What schedules are played on, one after the other: a system database of its own, its connections, and a clock
 * that only the schedule moves.
 */
import type { Core } from '../../../src/core/context.ts';
import { createProject } from '../../../src/core/project-create.ts';
import type { Sql } from '../../../src/db/client.ts';
import type { ProjectId } from '../../../src/lib/ids.ts';
import { command } from '../../helpers/commands.ts';
import { makeCoreOn, type TestCore } from '../../helpers/core.ts';
import { makeDatabase } from '../../helpers/database.ts';
import { KeptRows } from '../../helpers/kept-rows.ts';
import { Actor, Traffic } from './actor.ts';
import type { Known } from './commands.ts';
import { gateDatabase, prepareTime } from './gated-database.ts';
import { type Client, LentConnections } from './lent-connections.ts';

export const workerNames = ['w1', 'w2', 'urgent'] as const;
export const clientNames = ['c1', 'c2'] as const;
/** Works off what is left when a schedule comes to its end. */
export const lastWorkerName = 'w0';
export const reconcilerName = 'r1';

const beginning = Date.UTC(2040, 0, 1);

export class Ground {
  readonly test: TestCore;
  readonly connections: LentConnections;
  #nowMs = beginning;
  readonly #kept: KeptRows;

  private constructor(test: TestCore, connections: LentConnections, kept: KeptRows) {
    this.test = test;
    this.connections = connections;
    this.#kept = kept;
  }

  static async open(): Promise<Ground> {
    const made = await makeDatabase(2);
    const test = await makeCoreOn(made);
    const connections = new LentConnections(made.options);
    await prepareTime(connections.control);
    return new Ground(test, connections, await KeptRows.open(connections.control as Sql));
  }

  async close(): Promise<void> {
    await this.connections.close();
    await this.test.close();
  }

  /** For the schedule itself: to move the clock, to take leases away, to look. */
  get control(): Client {
    return this.connections.control;
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

  /** What is in the system database now, for `putBack`. */
  async keep(): Promise<void> {
    await this.#kept.keep();
  }

  async putBack(nowMs: number): Promise<void> {
    await Promise.all([this.#kept.putBack(), this.moveClock(nowMs)]);
  }

  /** A new project, whose operations wait in the queue. */
  async prepare(): Promise<Known> {
    await this.#kept.remove();
    await this.moveClock(beginning);
    const input = { name: 'simulated', organizationId: null, endpointDefaults: {}, annotation: {} };
    const { caller } = this.test;
    const nobody = new Actor('nobody', new Traffic());
    nobody.setFree();
    const core = { ...this.core, database: gateDatabase(nobody, this.connections) };
    const made = await command({ core }, (scope) => createProject(scope, caller, input));
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
