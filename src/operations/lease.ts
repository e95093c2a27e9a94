/**
 * A worker's hold on an operation, as far as the worker can tell by itself. The database decides who may write an
 * outcome; but a call of the driver changes files and servers, which know no leases. So a worker that was held up (its
 * process stopped, the machine asleep) must notice before its next call that somebody else may have the operation by
 * now.
 */
import type { ComputeDriver } from '../compute/interface/driver.ts';
import type { Watches } from '../lib/steady-time.ts';

export class LeaseLostError extends Error {
  constructor() {
    super('the worker was held up for longer than its lease');
    this.name = 'LeaseLostError';
  }
}

export class Lease {
  readonly #watches: Watches;
  readonly #leaseMs: number;
  #clockMs = Number.NEGATIVE_INFINITY;
  #passedMs = Number.NEGATIVE_INFINITY;

  constructor(watches: Watches, leaseMs: number) {
    this.#watches = watches;
    this.#leaseMs = leaseMs;
  }

  /** What the database answers counts from before it was asked. */
  async confirm<T>(ask: () => Promise<T>, isGranted: (answer: T) => boolean): Promise<T> {
    const [clockMs, passedMs] = [this.#watches.clockMs(), this.#watches.passedMs()];
    const answer = await ask();
    if (isGranted(answer)) [this.#clockMs, this.#passedMs] = [clockMs, passedMs];
    return answer;
  }

  /** By both watches: one of them stands still while the machine sleeps, and the other one can be set. */
  get isHeld(): boolean {
    const { clockMs, passedMs } = this.#watches;
    return Math.max(clockMs() - this.#clockMs, passedMs() - this.#passedMs) < this.#leaseMs;
  }
}

/** The driver as long as the lease is held; later calls are refused before they have any effect. */
export function whileHeld(driver: ComputeDriver, lease: Lease): ComputeDriver {
  return new Proxy(driver, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== 'function') return member;
      return (...words: unknown[]) =>
        lease.isHeld ? Reflect.apply(member, target, words) : Promise.reject(new LeaseLostError());
    },
  });
}
