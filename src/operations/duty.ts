/**
 * A duty that one of several workers has at a time: to run the reconcilers. They tolerate each other, since each checks
 * what it has seen under a lock before it acts, but two sets of them would ask every server twice. The worker that has
 * the duty renews it; when it stops it gives the duty up, and when it dies or stalls another one takes over after the
 * time for which it was held.
 */
import type { Database } from '../db/client.ts';
import { dutiesChannel, giveUpDuty, takeDuty } from '../db/duties.ts';
import { type Follower, follow } from '../db/follow.ts';
import type { Logger } from '../lib/log.ts';
import { machineWatches, type Watches } from '../lib/steady-time.ts';
import { Lease } from './lease.ts';

export interface DutyOptions {
  readonly name: string;
  readonly workerId: string;
  readonly database: Pick<Database, 'sql' | 'listen'>;
  readonly log: Logger;
  /** For how long it is taken each time. */
  readonly heldMs?: number;
  readonly watches?: Watches;
}

const usualHeldMs = 15_000;
const isTaken = (answer: boolean) => answer;

export class Duty {
  readonly #options: DutyOptions;
  readonly #heldMs: number;
  readonly lease: Lease;
  readonly #waiting = new Set<() => void>();
  #follower: Follower | null = null;
  #wasHeld = false;

  constructor(options: DutyOptions) {
    this.#options = options;
    this.#heldMs = options.heldMs ?? usualHeldMs;
    this.lease = new Lease(options.watches ?? machineWatches, this.#heldMs);
  }

  /** Judged by this worker's own watches: one that was held up knows that another may have taken over. */
  get isHeld(): boolean {
    return this.lease.isHeld;
  }

  async start(): Promise<void> {
    const { database, log } = this.#options;
    this.#follower = await follow(database, {
      channels: [dutiesChannel],
      pollMs: this.#heldMs / 3,
      run: () => this.#take(),
      onFailure: (error) => log.warn({ err: error }, 'it could not be read whose duty the reconcilers are'),
    });
  }

  /** Resolves when it is held, or with the signal. */
  async untilHeld(signal: AbortSignal): Promise<void> {
    if (this.isHeld || signal.aborted) return;
    await new Promise<void>((resolve) => {
      const end = () => {
        this.#waiting.delete(end);
        signal.removeEventListener('abort', end);
        resolve();
      };
      this.#waiting.add(end);
      signal.addEventListener('abort', end);
    });
  }

  /** Call it when the work has ended: another worker may begin at once. */
  async stop(): Promise<void> {
    const { database, name, workerId, log } = this.#options;
    await this.#follower?.stop();
    await giveUpDuty(database.sql, name, workerId).catch((error) =>
      log.warn({ err: error }, 'a duty was not given up'),
    );
  }

  async #take(): Promise<void> {
    const { database, name, workerId, log } = this.#options;
    await this.lease.confirm(() => takeDuty(database.sql, name, workerId, this.#heldMs), isTaken);
    if (this.isHeld !== this.#wasHeld) log.info({ isHeld: this.isHeld }, 'the reconcilers have another worker');
    this.#wasHeld = this.isHeld;
    if (this.isHeld) for (const end of this.#waiting) end();
  }
}

/** For a worker that can have no other beside it. */
export const ownDuty = { isHeld: true, untilHeld: async (_signal: AbortSignal) => {} };
