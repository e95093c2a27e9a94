/**
 * The figures of a process itself, for its metrics. They are kept from the first scrape on: to know how late the event
 * loop is takes a timer that fires a hundred times a second, which most of an idle process would be.
 */
import { collectDefaultMetrics, Registry } from 'prom-client';
import { delay } from './clock.ts';

/** Without a single reading the loop would seem late by centuries. */
const firstReadingsMs = 50;

export class ProcessRegistry extends Registry {
  readonly #prefix: string;
  #isFollowed: Promise<void> | null = null;

  constructor(prefix = '') {
    super();
    this.#prefix = prefix;
  }

  override async metrics(): Promise<string> {
    await this.#follow();
    return super.metrics();
  }

  override async getMetricsAsJSON() {
    await this.#follow();
    return super.getMetricsAsJSON();
  }

  #follow(): Promise<void> {
    this.#isFollowed ??= this.#begin();
    return this.#isFollowed;
  }

  async #begin(): Promise<void> {
    collectDefaultMetrics({ register: this, prefix: this.#prefix });
    await delay(firstReadingsMs);
  }
}
