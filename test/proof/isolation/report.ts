/** What a part of the isolation run has tried, and what it has found. */
import type { LedgerTable } from '../ledger.ts';

export interface PartReport {
  readonly part: string;
  readonly attempts: number;
  /** Of what nobody else may see, each as a sentence that can be repeated. */
  readonly leaks: readonly string[];
  /** Of what nobody else may change, or of what should have been refused and was not. */
  readonly changes: readonly string[];
  readonly tables?: readonly LedgerTable[];
}

const everyMs = 10_000;

/** Prints where a part is, every ten seconds or so. */
export function progressOf(part: string): (done: number, of: number) => void {
  let saidAt = Date.now();
  return (done, of) => {
    if (Date.now() - saidAt < everyMs) return;
    saidAt = Date.now();
    process.stdout.write(`isolation ${part}: ${done} of ${of}\n`);
  };
}
