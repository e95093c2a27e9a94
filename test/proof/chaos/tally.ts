/** What a run has seen, as its ledger has it. */
import type { Ledger } from '../ledger.ts';
import type { World } from './world.ts';

export class Tally {
  readonly #faults = new Map<string, { count: number; tookMs: number[] }>();
  readonly #episodes = new Map<string, { episodes: number; faults: number }>();
  readonly #transports = new Map<string, { rows: number; broken: number }>();
  rowsVerified = 0;
  ofEpisode = 0;
  #acknowledged = 0;
  #unknown = 0;
  #calls = 0;
  #lost = 0;
  #doubled = 0;

  addFault(name: string, count: number, tookMs: number): void {
    const known = this.#faults.get(name) ?? { count: 0, tookMs: [] };
    known.count += count;
    known.tookMs.push(tookMs);
    this.#faults.set(name, known);
    this.ofEpisode += count;
  }

  endEpisode(configuration: string, world: World): void {
    const known = this.#episodes.get(configuration) ?? { episodes: 0, faults: 0 };
    this.#episodes.set(configuration, { episodes: known.episodes + 1, faults: known.faults + this.ofEpisode });
    this.ofEpisode = 0;
    this.#calls += world.operationCount;
    this.#lost += world.rowsLost;
    this.#doubled += world.rowsDoubled;
    for (const { transport, log, brokenCount } of world.writers) {
      this.#acknowledged += log.acknowledgedCount;
      this.#unknown += log.last - log.acknowledgedCount;
      const { rows, broken } = this.#transports.get(transport) ?? { rows: 0, broken: 0 };
      this.#transports.set(transport, { rows: rows + log.acknowledgedCount, broken: broken + brokenCount });
    }
  }

  get faultCount(): number {
    return [...this.#faults.values()].reduce((sum, { count }) => sum + count, 0);
  }

  ledger(seed: number, seconds: number): Ledger {
    return {
      seed,
      seconds,
      totals: {
        faults: this.faultCount,
        episodes: [...this.#episodes.values()].reduce((sum, { episodes }) => sum + episodes, 0),
        'requests to the API': this.#calls,
        'acknowledged rows': this.#acknowledged,
        'rows whose answer was lost': this.#unknown,
        'rows lost': this.#lost,
        'rows doubled': this.#doubled,
      },
      tables: [
        {
          title: 'Seconds until the API and clients on every transport are served again',
          columns: ['fault', 'count', 'median', 'p99', 'most'],
          rows: [...this.#faults].sort(([a], [b]) => a.localeCompare(b)).map(([name, found]) => this.#row(name, found)),
        },
        {
          title: 'By configuration',
          columns: ['configuration', 'episodes', 'faults'],
          rows: [...this.#episodes].map(([name, { episodes, faults }]) => [name, episodes, faults]),
        },
        {
          title: 'By transport',
          columns: ['transport', 'rows acknowledged', 'sessions that broke'],
          rows: [...this.#transports].map(([name, { rows, broken }]) => [name, rows, broken]),
        },
      ],
    };
  }

  #row(name: string, { count, tookMs }: { count: number; tookMs: number[] }): (string | number)[] {
    const sorted = tookMs.toSorted((a, b) => a - b);
    const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
    const seconds = (ms: number) => Number((ms / 1_000).toFixed(2));
    return [name, count, seconds(at(0.5)), seconds(at(0.99)), seconds(at(1))];
  }
}
