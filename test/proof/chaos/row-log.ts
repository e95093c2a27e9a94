/**
 * What one writer knows of its rows, and what must hold for the table that it wrote to. Each number is sent once: one
 * that was acknowledged is there once, one whose answer never came may be there once or not at all.
 */

export interface FoundRows {
  readonly number: number;
  readonly copies: number;
}

export class RowLog {
  readonly #acknowledged = new Set<number>();
  #last = 0;

  /** The number of the next row, which is unknown until it is acknowledged. */
  next(): number {
    return ++this.#last;
  }

  acknowledge(number: number): void {
    this.#acknowledged.add(number);
  }

  get acknowledgedCount(): number {
    return this.#acknowledged.size;
  }

  /** Taken before a look at the table, which then must have these rows; later ones may be there too. */
  acknowledgedSoFar(above = 0): number[] {
    return [...this.#acknowledged].filter((number) => number > above);
  }

  get last(): number {
    return this.#last;
  }
}

export interface RowProblems {
  readonly lost: number[];
  readonly doubled: number[];
  readonly invented: number[];
}

/** `expected` must be there, once; others up to `last` may. */
export function compareRows(expected: readonly number[], found: readonly FoundRows[], last: number): RowProblems {
  const copies = new Map(found.map((row) => [row.number, row.copies]));
  return {
    lost: expected.filter((number) => !copies.has(number)),
    doubled: found.filter((row) => row.copies > 1).map(({ number }) => number),
    invented: found.filter(({ number }) => number < 1 || number > last).map(({ number }) => number),
  };
}

export function problemCount({ lost, doubled, invented }: RowProblems): number {
  return lost.length + doubled.length + invented.length;
}
