/** A client that inserts numbered rows all the time, over one transport, and logs which of them were acknowledged. */
import { thinkTime } from '../../helpers/eventually.ts';
import { RowLog } from './row-log.ts';
import { openSession, type Place, type Session, type TransportName } from './transports.ts';

const betweenRowsMs = 40;
const betweenTriesMs = 100;

export class Writer {
  readonly transport: TransportName;
  readonly name: string;
  readonly log = new RowLog();
  /** Numbers up to this one were found in the table by a look in between. */
  checkedUpTo = 0;
  brokenCount = 0;
  lastProblem = '';
  readonly #place: Place;
  readonly #stop = new AbortController();
  #done: Promise<void> | undefined;
  #session: Session | undefined;
  /** When the last row that was acknowledged had been sent. */
  #lastSentMs = Number.NEGATIVE_INFINITY;
  #lastHeardMs = Number.NEGATIVE_INFINITY;

  constructor(name: string, transport: TransportName, place: Place) {
    this.name = name;
    this.transport = transport;
    this.#place = place;
  }

  start(): void {
    this.#done = this.#work();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    this.#session?.cut();
    await this.#done;
  }

  /** When a row was acknowledged that had been sent after this moment; null if none was yet. */
  heardAfter(sinceMs: number): number | null {
    return this.#lastSentMs > sinceMs ? this.#lastHeardMs : null;
  }

  async #work(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      try {
        this.#session = await openSession(this.transport, this.#place);
        while (!this.#stop.signal.aborted) await this.#insert(this.#session);
      } catch (error) {
        this.brokenCount++;
        this.lastProblem = String(error);
        await thinkTime(betweenTriesMs);
      } finally {
        this.#session?.cut();
        this.#session = undefined;
      }
    }
  }

  async #insert(session: Session): Promise<void> {
    const number = this.log.next();
    const sentMs = performance.now();
    await session.insert(this.name, number);
    this.log.acknowledge(number);
    [this.#lastSentMs, this.#lastHeardMs] = [sentMs, performance.now()];
    await thinkTime(betweenRowsMs);
  }
}
