/**
 * Where the lines of a log go, as a program was given it by whoever started it. What is not taken, on a full disk above
 * all, waits for the next try, and when too much waits, lines are left out and counted: a program must not end, stand
 * still or grow because its log cannot be kept.
 */
import { write, writeSync } from 'node:fs';

const standardOutput = 1;
const waitingBytesMax = 1024 * 1024;
/** A reader that is slow is asked again. */
const busyMs = 100;

export interface LogOutput {
  write(line: string): void;
}

export interface LogOutputOptions {
  readonly descriptor?: number;
  readonly waitingMax?: number;
  /** Told once lines can be written again: so many are missing. */
  readonly onGap?: (lines: number) => void;
}

const all = new Set<Output>();
process.on('exit', () => {
  for (const output of all) output.finish();
});

export function openLogOutput(options: LogOutputOptions = {}): LogOutput {
  const output = new Output(options);
  all.add(output);
  return output;
}

class Output implements LogOutput {
  readonly #descriptor: number;
  readonly #waitingMax: number;
  readonly #onGap: ((lines: number) => void) | undefined;
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #isWriting = false;
  #isClosed = false;
  #leftOut = 0;

  constructor({ descriptor = standardOutput, waitingMax = waitingBytesMax, onGap }: LogOutputOptions) {
    this.#descriptor = descriptor;
    this.#waitingMax = waitingMax;
    this.#onGap = onGap;
  }

  write(line: string): void {
    if (this.#isClosed) return;
    const bytes = Buffer.from(line);
    if (this.#waitingBytes + bytes.length > this.#waitingMax) {
      this.#leftOut += 1;
    } else {
      this.#waiting.push(bytes);
      this.#waitingBytes += bytes.length;
    }
    this.#writeOn();
  }

  /** What waits when the process ends, as far as it is taken. */
  finish(): void {
    if (this.#isClosed || this.#waitingBytes === 0) return;
    try {
      // A write that is under way is completed by its thread, perhaps after this one.
      writeSync(this.#descriptor, this.#takeAll());
    } catch {
      // There is nobody left to tell.
    }
  }

  #writeOn(): void {
    if (this.#isWriting || this.#waitingBytes === 0) return;
    const bytes = this.#takeAll();
    this.#isWriting = true;
    write(this.#descriptor, bytes, (error, written) => {
      this.#isWriting = false;
      if (error?.code === 'EPIPE') return this.#close();
      const rest = error === null ? bytes.subarray(written) : bytes;
      if (rest.length > 0) this.#putBack(rest);
      if (error === null) return rest.length > 0 || this.#waitingBytes > 0 ? this.#writeOn() : this.#tellGap();
      // Whatever else it is, the next line tries again.
      if (error.code === 'EAGAIN') setTimeout(() => this.#writeOn(), busyMs).unref();
    });
  }

  #takeAll(): Buffer {
    const bytes = this.#waiting.length === 1 ? this.#waiting[0] : Buffer.concat(this.#waiting);
    this.#waiting = [];
    this.#waitingBytes = 0;
    return bytes ?? Buffer.alloc(0);
  }

  #putBack(bytes: Buffer): void {
    this.#waiting.unshift(bytes);
    this.#waitingBytes += bytes.length;
  }

  #tellGap(): void {
    if (this.#leftOut === 0) return;
    const lines = this.#leftOut;
    this.#leftOut = 0;
    this.#onGap?.(lines);
  }

  /** The reader is gone for good, as after `catnap up | head`. */
  #close(): void {
    this.#isClosed = true;
    this.#waiting = [];
    this.#waitingBytes = 0;
  }
}
