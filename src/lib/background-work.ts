/**
 * Work that goes on behind its caller's back: once at a time for each name. A caller that begins it waits for a while,
 * so that short work is done when its caller is; a failure is thrown to whoever waits, or else to the next caller.
 */
import { delay } from './clock.ts';

export class BackgroundWork {
  readonly #underWay = new Set<string>();
  readonly #failures = new Map<string, { readonly error: unknown }>();
  readonly #waitMs: number;

  constructor(waitMs: number) {
    this.#waitMs = waitMs;
  }

  /** Does nothing while the work of an earlier caller is under way. */
  async run(name: string, work: () => Promise<void>): Promise<void> {
    this.#throwFailure(name);
    if (this.#underWay.has(name)) return;
    this.#underWay.add(name);
    const isDone = new AbortController();
    const end = () => {
      this.#underWay.delete(name);
      isDone.abort();
    };
    work()
      .catch((error: unknown) => {
        this.#failures.set(name, { error });
      })
      .finally(end);
    await delay(this.#waitMs, isDone.signal);
    this.#throwFailure(name);
  }

  #throwFailure(name: string): void {
    const failure = this.#failures.get(name);
    this.#failures.delete(name);
    if (failure) throw failure.error;
  }
}
