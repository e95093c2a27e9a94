/**
 * One of those who act in a schedule: a worker's run of one operation, a command, a turn of a reconciler. Whatever it
 * asks of the database or of the driver waits at a gate, until the schedule lets it through, with or without a fault.
 */
import { RowOrder } from './row-order.ts';

/**
 * `lose`: the connection is lost, and nothing was done. `after`: it is lost when the commit is done. `fail`: the driver
 * fails. `refuse`: a server refuses for good. `full`: the disk is full. `crash`: whoever asks is never heard of again.
 */
export type Fault = 'lose' | 'after' | 'fail' | 'refuse' | 'full';

export interface Gate {
  /** What happens behind it: `driver.start`, `commit`, the first words of a statement. */
  readonly label: string;
  readonly faults: readonly Fault[];
  open(fault: Fault | null): void;
}

/** What a call or a statement is under way with: a connection, whose server may wait for a lock, or nothing like it. */
export interface Carrier {
  readonly pid?: number | null;
}

/**
 * Calls and statements of all actors that are under way: without any, everybody waits at a gate or has ended. They are
 * counted by what carries them, since of several that were sent over one connection only the first can wait for a lock.
 */
export class Traffic {
  readonly rows: RowOrder;
  readonly #carried = new Map<Carrier, number>();
  /** Connections that were seen to wait for locks, and nobody has released any since. */
  #locked: ReadonlySet<Carrier> = new Set();
  #calls: (() => void)[] = [];
  #changes = 0;

  constructor(rows = new RowOrder()) {
    this.rows = rows;
  }

  get areAllLocked(): boolean {
    return [...this.#carried.keys()].every((carrier) => this.#locked.has(carrier));
  }

  enter(carrier: Carrier): void {
    this.#changes++;
    this.#carried.set(carrier, (this.#carried.get(carrier) ?? 0) + 1);
  }

  leave(carrier: Carrier, hasReleased: boolean): void {
    this.#changes++;
    if (hasReleased) this.#locked = new Set();
    const left = (this.#carried.get(carrier) ?? 0) - 1;
    if (left > 0) this.#carried.set(carrier, left);
    else this.#carried.delete(carrier);
    if (!this.areAllLocked) return;
    for (const call of this.#calls.splice(0)) call();
  }

  /** Asks whether all of them wait for locks; the answer is worth nothing if something has moved meanwhile. */
  async look(areLocked: (pids: readonly number[]) => Promise<boolean>): Promise<void> {
    const changes = this.#changes;
    const pids = [...this.#carried.keys()].map(({ pid }) => pid ?? null);
    // A call of the driver, a begin and a commit end by themselves.
    if (!pids.every((pid) => pid !== null)) return;
    const isSo = await areLocked(pids);
    if (isSo && changes === this.#changes) this.#locked = new Set(this.#carried.keys());
  }

  whenCalm(call: () => void): void {
    this.#calls.push(call);
  }
}

/** Everything that a schedule does to somebody begins with this, which tells it from a failure of Catnap's own. */
export const injected = 'simulated:';

export const connectionLost = () =>
  Object.assign(new Error(`${injected} connection lost`), { code: 'CONNECTION_CLOSED' });

export class Actor {
  readonly name: string;
  readonly traffic: Traffic;
  readonly gates: Gate[] = [];
  /** Rejects when it crashes, which rolls an open transaction back. */
  readonly crashed: Promise<never>;
  /** Nothing holds it up: for the end of a schedule. */
  isFree = false;
  isDead = false;
  isDone = false;
  /** A worker whose lease was taken away while it was alive: it may be late with anything. */
  isStalled = false;
  isInTransaction = false;
  /** Has locked or written rows of operations, which others learn of when its transaction has ended. */
  hasChangedQueue = false;
  /** Statements that wait for a lock, most likely. */
  inFlight = 0;
  /** Of the operation that it has claimed. */
  lease: string | null = null;
  /** Resolves when it has ended by itself. */
  readonly ended: Promise<void>;
  end: () => void = () => {};
  #rejectCrashed: (error: Error) => void = () => {};

  constructor(name: string, traffic: Traffic) {
    this.name = name;
    this.traffic = traffic;
    this.crashed = new Promise((_, reject) => {
      this.#rejectCrashed = reject;
    });
    this.crashed.catch(() => {});
    this.ended = new Promise((resolve) => {
      this.end = () => {
        this.isDone = true;
        resolve();
      };
    });
  }

  /** It has stalled, and holds nothing that others wait for. */
  get isAbsent(): boolean {
    return this.isStalled && !this.isInTransaction;
  }

  /** Returns when it is let through; never, when it has crashed. */
  pass(label: string, faults: readonly Fault[]): Promise<Fault | null> {
    if (this.isDead) return new Promise(() => {});
    if (this.isFree) return Promise.resolve(null);
    return new Promise((open) => {
      this.gates.push({ label, faults, open });
    });
  }

  /** Counts as under way until it has ended. */
  async track<T>(work: () => PromiseLike<T>): Promise<T> {
    const leave = this.enter({});
    try {
      return await work();
    } finally {
      leave();
    }
  }

  /** Returns what is to be called at its end, and with true if locks were released then. */
  enter(carrier: Carrier): (hasReleased?: boolean) => void {
    this.inFlight++;
    this.traffic.enter(carrier);
    return (hasReleased = false) => {
      this.inFlight--;
      this.traffic.leave(carrier, hasReleased);
    };
  }

  crash(): void {
    this.isDead = true;
    this.isDone = true;
    this.gates.length = 0;
    this.#rejectCrashed(new Error(`${injected} crash`));
  }

  setFree(): void {
    this.isFree = true;
    for (const gate of this.gates.splice(0)) gate.open(null);
  }
}
