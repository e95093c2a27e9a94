/**
 * One schedule at work: its actors, and the moves that it can make. A move is a line of text, so that a schedule can be
 * written down, shortened and played again:
 *
 *     w1                     the worker takes an operation, or goes on: in a transaction up to its end, otherwise to
 *                            its next gate; `w1 step`: to its next gate in any case
 *     w1 crash               it is never heard of again; `w1 stall`: it loses its lease and knows nothing of it
 *     w1 fail                its next gate lets it through with a fault (see `Fault`)
 *     c1 suspend 0 1         a client sends a command, with the numbers of its subjects; `c1` goes on with it
 *     r1 lost-computes       a reconciler begins a turn; `r1` goes on with it
 *     time 200               the clock moves, in milliseconds
 *     kill 0                 one of the servers dies
 *     settle                 everybody but a stalled one goes on until there is nothing left to do
 */
import type { FakeDriver } from '../../../src/compute/fake/fake-driver.ts';
import { runCommand } from '../../../src/core/command.ts';
import type { Core } from '../../../src/core/context.ts';
import { requestWake } from '../../../src/core/wake.ts';
import { CatnapError } from '../../../src/lib/errors.ts';
import { createLogger, type Logger } from '../../../src/lib/log.ts';
import { jobRegistry } from '../../../src/operations/registry.ts';
import { OperationRunner } from '../../../src/operations/runner.ts';
import type { Job } from '../../../src/operations/step.ts';
import { testProviders } from '../../helpers/providers.ts';
import { Actor, type Fault, injected, Traffic } from './actor.ts';
import { type Scene, untilCalm } from './calm.ts';
import { commands, type Known, type Wish } from './commands.ts';
import { noCounts } from './counts.ts';
import { gateDatabase } from './gated-database.ts';
import { type Calls, gateDriver, isCarriedOut } from './gated-driver.ts';
import { type Ground, lastWorkerName, reconcilerName, workerNames } from './ground.ts';
import { nothingBefore, type Past } from './past.ts';
import { leaseMs } from './quick-timers.ts';
import { reconcilers, resting } from './reconcilers.ts';
import { RowOrder } from './row-order.ts';

const providers = testProviders();
const turnsMax = 5_000;
const roundsMax = 8;
/** Enough to see that a worker does not get anywhere. */
const violationsMax = 20;

export class World {
  readonly ground: Ground;
  readonly driver: FakeDriver;
  readonly known: Known;
  readonly actors = new Map<string, Actor>();
  readonly violations: string[];
  readonly counts = noCounts();
  /** What has happened, without ids and times: the same for the same schedule. */
  readonly trace: string[];
  /** Workers that found nothing to do, and nothing has changed since. */
  readonly idle = new Set<string>();
  readonly traffic: Traffic;
  readonly #registry: Readonly<Record<string, Job>>;
  readonly #calls: Calls = {
    underWay: new Map(),
    overlaps: (_, one, other) => this.violations.push(`${one} and ${other} work on the same thing at once`),
  };
  readonly #scene: Scene;
  #commandsSent: number;
  #log: Logger;

  constructor(
    ground: Ground,
    { driver, known }: { readonly driver: FakeDriver; readonly known: Known },
    registry: Readonly<Record<string, Job>> = jobRegistry,
    past: Past = nothingBefore,
  ) {
    this.ground = ground;
    this.driver = driver;
    this.known = known;
    this.#registry = registry;
    this.violations = [...past.violations];
    this.trace = [...past.trace];
    this.traffic = new Traffic(new RowOrder(past.rows));
    this.#commandsSent = past.commandsSent;
    this.#scene = { ...this, connections: ground.connections };
    const destination = { write: (line: string) => this.#hear(line) };
    this.#log = createLogger({ level: 'error', process: 'simulated', destination });
  }

  get past(): Past {
    const { violations, trace, traffic } = this;
    return { violations: [...violations], trace: [...trace], rows: traffic.rows, commandsSent: this.#commandsSent };
  }

  /** Errors that no fault explains. */
  #hear(line: string): void {
    const { msg, err } = JSON.parse(line) as { msg: string; err?: { message: string } };
    if (err === undefined || err.message.includes(injected)) return;
    this.violations.push(`${msg}: ${err.message.replaceAll(/[a-z]+-[a-z]+-[a-z0-9]{8}/g, 'ID')}`);
  }

  /** False when the move cannot be made now. */
  async make(move: string): Promise<boolean> {
    const [name = '', ...words] = move.split(' ');
    const isMade = await this.#make(name, words);
    if (!isMade) return false;
    this.counts.moves++;
    await this.#calm();
    this.#noticeWork();
    this.trace.push(`${move} -> ${this.#describe(name)}`);
    return true;
  }

  async #make(name: string, words: readonly string[]): Promise<boolean> {
    const [first = ''] = words;
    if (name === 'time') {
      this.idle.clear();
      await this.ground.moveClock(this.ground.nowMs + Number(first));
      return true;
    }
    if (name === 'kill') return this.#kill(Number(first));
    const actor = this.actors.get(name);
    if (actor !== undefined && !actor.isDone) return this.#goOn(actor, first);
    if (workerNames.some((worker) => worker === name)) return first === '' && this.#work(name);
    if (name === reconcilerName) return this.#reconcile(first);
    return this.#command(name, words);
  }

  /** A worker that has found nothing to do would find nothing again, until somebody has changed the queue. */
  #noticeWork(): void {
    for (const actor of this.actors.values()) {
      if (!actor.hasChangedQueue || actor.isInTransaction) continue;
      actor.hasChangedQueue = false;
      this.idle.clear();
    }
  }

  #describe(name: string): string {
    const actor = this.actors.get(name);
    if (actor === undefined) return '';
    return actor.isDone ? 'end' : (actor.gates[0]?.label ?? 'lock');
  }

  #kill(number: number): boolean {
    const running = [...this.driver.computes.values()].filter(({ process }) => process !== null);
    const struck = running[number % running.length];
    if (struck === undefined) return false;
    this.driver.kill(struck.ref.endpointId);
    this.counts.faults++;
    return true;
  }

  async #goOn(actor: Actor, how: string): Promise<boolean> {
    if (actor.inFlight > 0) return false;
    if (how === 'crash') {
      this.counts.crashes++;
      actor.crash();
      // Its lease runs out, sooner or later: as soon as somebody looks for work.
      await this.#takeLease(actor);
      return true;
    }
    if (how === 'stall') {
      if (actor.lease === null || actor.isStalled || actor.isInTransaction || isCarriedOut(actor)) return false;
      this.counts.stalls++;
      actor.isStalled = true;
      await this.#takeLease(actor);
      return true;
    }
    const gate = actor.gates.shift();
    if (gate === undefined) return false;
    const fault = gate.faults.find((known: Fault) => known === how) ?? null;
    if (fault !== null) this.counts.faults++;
    gate.open(fault);
    while (how === '' && (await this.#isWithinTransaction(actor))) actor.gates.shift()?.open(null);
    return true;
  }

  async #isWithinTransaction(actor: Actor): Promise<boolean> {
    await this.#calm();
    const [next] = actor.gates;
    return actor.isInTransaction && actor.inFlight === 0 && next !== undefined && next.label !== 'commit';
  }

  /** Not from under a transaction that holds the row: that one is about to end. */
  async #takeLease({ lease }: Actor): Promise<void> {
    await this.#calm();
    this.idle.clear();
    if (lease === null) return;
    await this.ground.control`
      update operations set lease_until = now() - interval '1 s' where id in (
        select id from operations where lease = ${lease} for update skip locked)`;
  }

  #begin(name: string, run: (actor: Actor, core: Core) => Promise<unknown>, isFree = false): Actor {
    const actor = new Actor(name, this.traffic);
    actor.isFree = isFree;
    this.actors.set(name, actor);
    const database = gateDatabase(actor, this.ground.connections);
    const ended = (error?: unknown) => {
      if (actor.isDead) return;
      actor.end();
      if (error !== undefined) this.#judge(name, error);
    };
    run(actor, { ...this.ground.core, database }).then(() => ended(), ended);
    return actor;
  }

  /** What was refused with a reason, or failed because of a fault, is fine. */
  #judge(name: string, error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    if (message.includes(injected)) return;
    if (error instanceof CatnapError && error.kind !== 'internal') {
      this.counts.refusals++;
      return;
    }
    this.violations.push(`${name} failed: ${message}`);
  }

  #work(name: string, isFree = false): boolean {
    this.#begin(
      name,
      async (actor, core) => {
        const driver = gateDriver(actor, this.driver, this.#calls);
        const dumpSchema = async () => '';
        const parts = { core, driver, providers, dumpSchema, log: this.#log, registry: this.#registry };
        const watches = { clockMs: () => 0, passedMs: () => (actor.isStalled ? leaseMs : 0) };
        const runner = new OperationRunner({ ...parts, concurrency: 1, leaseMs, watches });
        if (await runner.runNext({ core, urgentOnly: name === 'urgent' })) this.counts.operations++;
        else this.idle.add(name);
      },
      isFree,
    );
    return true;
  }

  #reconcile(which: string, isFree = false): boolean {
    const reconciler = reconcilers[which];
    if (reconciler === undefined) return false;
    this.#begin(
      reconcilerName,
      (actor, core) => reconciler.turn({ core, driver: gateDriver(actor, this.driver, this.#calls), log: this.#log }),
      isFree,
    );
    return true;
  }

  #command(name: string, [what = '', first = '0', second = '0']: readonly string[]): boolean {
    this.counts.commands++;
    this.#commandsSent++;
    if (what === 'wake') {
      const endpointId = this.known.endpoints[Number(first) % this.known.endpoints.length];
      if (endpointId !== undefined) this.#begin(name, (_, core) => requestWake(core, endpointId));
      return endpointId !== undefined;
    }
    const choice = { caller: this.ground.test.caller, known: this.known, name: `n${this.#commandsSent}` };
    const wish = commands[what]?.({ ...choice, first: Number(first), second: Number(second) });
    if (wish === undefined) return false;
    for (const doubt of wish.doubts ?? []) this.known.doubtful.add(doubt);
    this.#begin(name, (_, core) => this.#send(core, choice.name, wish));
    return true;
  }

  /** As a client does: when the answer is lost, it sends the same request again. */
  async #send(core: Core, key: string, wish: Wish): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        const reply = await runCommand(core, { scope: 'simulated', key, body: key }, wish.work);
        wish.learn?.(reply as never);
        return;
      } catch (error) {
        const isLost = error instanceof Error && error.message.includes(injected);
        if (!isLost || attempt === 3) throw error;
      }
    }
  }

  #calm(): Promise<void> {
    return untilCalm(this.#scene);
  }

  /** Those who could go on now. */
  get waiting(): Actor[] {
    return [...this.actors.values()].filter(
      ({ isDone, inFlight, gates }) => !isDone && inFlight === 0 && gates.length > 0,
    );
  }

  /** Works off what is asked for and queued. A stalled actor goes on only after that, as late as can be. */
  async settle(): Promise<void> {
    await this.#endAll((actor) => !actor.isAbsent);
    await this.#drain();
    for (const [name, { isDone }] of this.actors) if (isDone) this.actors.delete(name);
    this.idle.clear();
  }

  /** Until reconcilers find nothing to do either. */
  async rest(): Promise<void> {
    await this.settle();
    if (this.actors.size > 0) {
      await this.#endAll(() => true);
      await this.#drain();
    }
    for (let round = 0; round < roundsMax; round++) {
      for (const which of resting) {
        this.#reconcile(which, true);
        await this.actors.get(reconcilerName)?.ended;
      }
      if ((await this.#lookAtQueue()).left === 0) return;
      await this.#drain();
    }
    this.violations.push('the reconcilers do not come to rest');
  }

  /** One at a time, first those whose locks others may wait for: the order is the same whenever it is played. */
  async #endAll(isMeant: (actor: Actor) => boolean): Promise<void> {
    for (let turns = 0; turns < turnsMax; turns++) {
      await this.#calm();
      const unfinished = [...this.actors.values()].filter((actor) => !actor.isDone && isMeant(actor));
      if (unfinished.length === 0) return;
      const ready = unfinished.filter(({ inFlight }) => inFlight === 0);
      // Without anybody, two wait for each other: Postgres ends one of them after a second.
      (ready.find(({ isInTransaction }) => isInTransaction) ?? ready[0])?.setFree();
    }
    throw new Error(`nobody goes on: ${this.trace.slice(-5).join('; ')}`);
  }

  async #drain(): Promise<void> {
    const { control } = this.ground;
    let { left } = await this.#lookAtQueue();
    for (let isStuck = false; left > 0; ) {
      this.idle.clear();
      this.#work(lastWorkerName, true);
      await this.actors.get(lastWorkerName)?.ended;
      if (!this.idle.has(lastWorkerName) && this.violations.length < violationsMax) continue;
      // Sent together, carried out in this order.
      const [, next] = await Promise.all([
        control`update operations set lease_until = now() - interval '1 s' where lease is not null`,
        this.#lookAtQueue(),
      ]);
      if (isStuck && next.at === null) return;
      if (next.at !== null) await this.ground.moveClock(next.at.getTime() + 1);
      isStuck = next.at === null;
      left = next.left;
    }
  }

  /** How much is unfinished, and when the next of it is due that is not due yet. */
  async #lookAtQueue(): Promise<{ readonly at: Date | null; readonly left: number }> {
    const [queue] = await this.ground.control<{ at: Date | null; left: number }[]>`
      select min(run_at) filter (where run_at > now()) as at, count(*)::int as left
      from operations where finished_at is null`;
    return queue ?? { at: null, left: 0 };
  }
}
