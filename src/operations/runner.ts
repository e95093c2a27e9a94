/**
 * Takes operations from the queue and runs their steps. A notification makes it quick, a poll makes it right. Any
 * number of runners may work on one database: the lease decides which one may write an outcome.
 */
import { randomUUID } from 'node:crypto';
import type { Providers } from '../auth-client/providers.ts';
import type { ComputeDriver } from '../compute/interface/driver.ts';
import { isOutage } from '../compute/interface/outage.ts';
import { makeDump } from '../compute/schema-dump/dump.ts';
import type { Core } from '../core/context.ts';
import { deadlineAfterFailure } from '../core/operation.ts';
import type { DumpSchema } from '../core/schema-reader.ts';
import type { Database, Tx } from '../db/client.ts';
import { extendLease, releaseLease } from '../db/leases.ts';
import {
  claimOperation,
  failStep,
  finishOperation,
  lockLeased,
  type OperationRow,
  operationsChannel,
  ordinaryPayload,
  selectNextDueMs,
  updateStep,
} from '../db/operations.ts';
import { lockProjectInAnyState } from '../db/projects.ts';
import { isUrgent, parseWakeCall, type WakeCall } from '../db/wakes.ts';
import { delay } from '../lib/clock.ts';
import { assertNever, errorText } from '../lib/errors.ts';
import type { Logger } from '../lib/log.ts';
import { machineWatches, type Watches } from '../lib/steady-time.ts';
import { withDiskAdvice } from './disk-advice.ts';
import { Lease, whileHeld } from './lease.ts';
import { jobRegistry } from './registry.ts';
import {
  goto,
  isFinal,
  type Job,
  type StepContext,
  StepFailure,
  type StepMemory,
  type StepResult,
  skip,
} from './step.ts';
import { findComputeOf } from './target.ts';
import { Doorbell, type Lane, makeLanes, OwnConnection } from './wake/lanes.ts';
import { raisePlainly, writeAtOnce } from './wake/quick-way.ts';

export interface RunnerOptions {
  readonly core: Core;
  readonly driver: ComputeDriver;
  readonly providers: Providers;
  /** Reads the schema of a database from a server that runs; by default as the API does. */
  readonly dumpSchema?: DumpSchema;
  readonly log: Logger;
  readonly concurrency: number;
  /** Each of these gets a lane of its own, for urgent operations alone. */
  readonly urgent?: readonly Database[];
  /** A connection of its own for whichever of the other lanes finds it free. */
  readonly own?: Database | null;
  readonly leaseMs?: number;
  /** Makes a lease that no other operation has. */
  readonly newLease?: () => string;
  readonly watches?: Watches;
  readonly pollMs?: number;
  /** While it returns true, somebody else looks for operations that nobody was notified of, and calls `lookAgain`. */
  readonly isQuiet?: () => boolean;
  readonly registry?: Readonly<Record<string, Job>>;
}

type Outcome = StepResult | { readonly kind: 'failed'; readonly error: unknown };

const retryMsMax = 10_000;
const unavailableMs = 1_000;
/** Less than the time after which an unused connection is closed: a wake must find the one of its lane open. */
const quietPollMs = 40_000;
const isFound = (claimed: OperationRow | undefined) => claimed !== undefined;
const isTrue = (answer: boolean) => answer;

export class OperationRunner {
  readonly #options: Required<RunnerOptions>;
  readonly #stopping = new AbortController();
  readonly #bell = new Doorbell();
  readonly #lanes: readonly Lane[];
  readonly #own: OwnConnection | null;
  #loops: Promise<void>[] = [];
  #unlisten: (() => Promise<void>) | null = null;

  constructor(options: RunnerOptions) {
    const dumpSchema = makeDump(options.core.config);
    const usual = {
      leaseMs: 10_000,
      watches: machineWatches,
      pollMs: 5_000,
      registry: jobRegistry,
      urgent: [],
      own: null,
    };
    this.#options = { dumpSchema, isQuiet: () => false, newLease: randomUUID, ...usual, ...options };
    this.#lanes = makeLanes(options.core, options.concurrency, this.#options.urgent);
    const { own } = this.#options;
    this.#own = own === null ? null : new OwnConnection(options.core, own);
  }

  async start(): Promise<void> {
    this.#unlisten = await this.#options.core.database.listen(operationsChannel, (payload) => {
      if (isUrgent(payload)) this.#bell.ring(true, parseWakeCall(payload));
      else if (payload === ordinaryPayload) this.#bell.ring(false);
      else this.#bell.ringForBoth();
    });
    this.#loops = this.#lanes.map((lane) => this.#loop(lane));
  }

  /** Waits for the running steps, and hands back what has more of them: another runner continues at once. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#bell.ringForAll();
    await Promise.all(this.#loops);
    await this.#unlisten?.();
  }

  async #loop(lane: Lane): Promise<void> {
    let call: WakeCall | null = null;
    while (!this.#stopping.signal.aborted) {
      try {
        const { rings } = this.#bell;
        const calledFor = call;
        call = null;
        if (await this.runNext(lane, calledFor)) continue;
        const idleMs = await this.#idleMs();
        if (!this.#stopping.signal.aborted) call = await this.#bell.wait(lane, idleMs, rings);
      } catch (error) {
        // The system database may be unavailable for a moment: the queue is still there when it comes back.
        this.#options.log.error({ err: error }, 'the operation queue could not be read');
        await delay(unavailableMs, this.#stopping.signal);
      }
    }
  }

  /** For operations that no notification has announced. */
  lookAgain(): void {
    this.#bell.ringForBoth();
  }

  async #idleMs(): Promise<number> {
    if (this.#options.isQuiet()) return quietPollMs;
    const dueMs = await selectNextDueMs(this.#options.core.database.sql);
    return Math.min(this.#options.pollMs, Math.max(5, dueMs ?? this.#options.pollMs));
  }

  /**
   * Claims one operation and runs it as far as it goes; false when nothing is due. With a `call`, its rows are queried
   * right after the claim, which is one round trip less if the operation is the one that was called for.
   */
  async runNext(
    lane: Lane = { core: this.#options.core, urgentOnly: false },
    call: WakeCall | null = null,
  ): Promise<boolean> {
    const own = lane.urgentOnly ? null : (this.#own?.take() ?? null);
    let wasUsed = false;
    try {
      wasUsed = await this.#runNextOn(lane, own, call);
      return wasUsed;
    } finally {
      own?.giveBack(wasUsed);
    }
  }

  async #runNextOn(lane: Lane, own: OwnConnection | null, call: WakeCall | null): Promise<boolean> {
    const { log, leaseMs, watches, newLease } = this.#options;
    const { urgentOnly } = lane;
    const core = own?.core ?? lane.core;
    const claiming = own?.isWarm === false ? lane.core : core;
    const lease = newLease();
    const held = new Lease(watches, leaseMs);
    const [claimed, compute] = await Promise.all([
      held.confirm(() => claimOperation(claiming.database.sql, lease, leaseMs, urgentOnly), isFound),
      call === null ? undefined : findComputeOf(claiming, call.projectId, call.endpointId).catch(() => undefined),
    ]);
    if (claimed === undefined) return false;
    // Each urgent operation rings for itself; only other work, which rings once for many, is passed on.
    if (!urgentOnly) this.#bell.ring(false);
    const waitedMs = core.clock.now().getTime() - claimed.createdAt.getTime();
    log.debug({ operation: claimed.id, job: claimed.job, waitedMs }, 'an operation was claimed');
    const heartbeat = setInterval(() => {
      // Not over the lane's own connection, which may be held up by a lock.
      const { sql } = this.#options.core.database;
      held.confirm(() => extendLease(sql, claimed.id, lease, leaseMs), isTrue).catch(() => {});
    }, leaseMs / 3);
    const driver = whileHeld(this.#options.driver, held);
    try {
      const isCalledFor = compute !== undefined && compute.endpoint.id === claimed.endpointId;
      const memory: StepMemory = isCalledFor ? { atClaim: compute } : {};
      let operation: OperationRow | undefined = claimed;
      while (operation !== undefined && !this.#stopping.signal.aborted) {
        operation = await this.#runStep({ core, driver }, operation, lease, memory);
      }
      if (operation !== undefined) await releaseLease(core.database.sql, operation.id, lease);
    } finally {
      clearInterval(heartbeat);
    }
    return true;
  }

  /** Runs the current step and records its outcome; returns the operation if its next step can run at once. */
  async #runStep(
    { core, driver }: Pick<StepContext, 'core' | 'driver'>,
    operation: OperationRow,
    lease: string,
    memory: StepMemory,
  ): Promise<OperationRow | undefined> {
    const { providers, registry, dumpSchema } = this.#options;
    const log = this.#options.log.child({ operation: operation.id, job: operation.job, step: operation.step });
    const context: StepContext = { operation, core, driver, providers, dumpSchema, log, memory };
    const job = registry[operation.job];
    const startedAt = performance.now();
    const outcome = await this.#attempt(job, context);
    log.debug({ ms: performance.now() - startedAt, outcome: outcome.kind }, 'a step was run');
    // Nothing to write: if the worker dies now, the previous step runs again, which every step allows.
    if (outcome.kind === 'goto' && outcome.write === null) return { ...operation, step: outcome.step };
    if (outcome.kind === 'raise' || outcome.kind === 'done') {
      const written = await writeAtOnce(core.database.sql, operation.id, lease, outcome);
      if (written !== null) return written.next;
    }
    const write = (result: Outcome) =>
      core.database.transaction((tx) => this.#writeOutcome(tx, job, { context, lease, outcome: result }));
    try {
      return await write(outcome);
    } catch (error) {
      // The outcome could not be written; a failure usually can be, and otherwise the lease runs out.
      log.error({ err: error }, 'the outcome of a step could not be written');
      return write({ kind: 'failed', error });
    }
  }

  async #writeOutcome(
    tx: Tx,
    job: Job | undefined,
    { context, lease, outcome }: { context: StepContext; lease: string; outcome: Outcome },
  ): Promise<OperationRow | undefined> {
    // The project first, as every command does: that order keeps the queue's order and avoids deadlocks.
    const [, held] = await Promise.all([
      lockProjectInAnyState(tx, context.operation.projectId),
      lockLeased(tx, context.operation.id, lease),
    ]);
    if (held === undefined) {
      context.log.warn('the lease was lost; the outcome of the step is left to its new holder');
      return undefined;
    }
    const current = { ...context, operation: { ...held, step: context.operation.step } };
    if (held.status !== 'cancelling') return this.#record(tx, job, current, outcome);
    await job?.giveUp(tx, current, 'cancelled');
    await finishOperation(tx, held, 'cancelled');
    return undefined;
  }

  async #attempt(job: Job | undefined, context: StepContext): Promise<Outcome> {
    const step = job?.steps[context.operation.step];
    if (step === undefined) return { kind: 'abandon', reason: `this version knows no step ${context.operation.step}` };
    if (context.operation.status === 'cancelling') return skip('cancelled');
    try {
      const result = await step(context);
      if (result.kind === 'wait' && this.#isLate(context.operation))
        return { kind: 'abandon', reason: 'it took too long' };
      return result;
    } catch (error) {
      return { kind: 'failed', error };
    }
  }

  #isLate(operation: OperationRow): boolean {
    return operation.deadlineAt.getTime() <= this.#options.core.clock.now().getTime();
  }

  async #record(
    tx: Tx,
    job: Job | undefined,
    context: StepContext,
    outcome: Outcome,
  ): Promise<OperationRow | undefined> {
    const { operation, log } = context;
    switch (outcome.kind) {
      case 'goto': {
        const state = { ...operation.state, ...(await outcome.write?.(tx)) };
        await updateStep(tx, operation.id, { step: outcome.step, state, waitMs: 0 });
        return { ...operation, step: outcome.step, state };
      }
      case 'raise':
        return this.#record(tx, job, context, goto(outcome.step, raisePlainly(outcome)));
      case 'wait':
        await updateStep(tx, operation.id, { step: operation.step, state: operation.state, waitMs: outcome.waitMs });
        return undefined;
      case 'done':
        await outcome.write?.(tx);
        await finishOperation(tx, operation, 'finished', outcome.note);
        return undefined;
      case 'skip':
        await finishOperation(tx, operation, 'skipped', outcome.reason);
        return undefined;
      case 'abandon':
        await this.#giveUp(tx, job, context, await withDiskAdvice(tx, outcome.reason));
        return undefined;
      case 'failed': {
        const reason = await withDiskAdvice(tx, errorText(outcome.error));
        log.warn({ err: outcome.error, failures: operation.failuresCount + 1 }, 'a step failed');
        const now = this.#options.core.clock.now();
        const deadlineAt = deadlineAfterFailure(operation, isOutage(outcome.error), now);
        const isOver = deadlineAt <= now || isFinal(operation.job, outcome.error);
        if (isOver) await this.#giveUp(tx, job, context, reason);
        else await failStep(tx, operation.id, { ...retryOf(operation, outcome.error, reason), deadlineAt });
        return undefined;
      }
      default:
        return assertNever(outcome);
    }
  }

  async #giveUp(tx: Tx, job: Job | undefined, context: StepContext, reason: string): Promise<void> {
    context.log.error({ reason }, 'the operation is given up');
    await job?.giveUp(tx, context, reason);
    await finishOperation(tx, context.operation, 'error', reason);
  }
}

function retryOf(operation: OperationRow, error: unknown, reason: string) {
  return {
    error: reason,
    retryMs: Math.min(retryMsMax, 100 * 2 ** operation.failuresCount),
    step: error instanceof StepFailure ? error.retryFrom : operation.step,
  };
}
