interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
  readonly n: number;
}

/** One line of a ledger; see `keep` in bench/measures.mjs. */
interface Measure {
  readonly what: string;
  readonly at?: number;
  readonly of?: string;
  readonly unit: string;
  readonly ours: Spread;
  readonly beside?: string;
  readonly peer?: Spread;
  readonly ratio?: Spread;
  readonly atLeast?: number;
  readonly atMost?: number;
}

export interface Ledger {
  readonly name: string;
  readonly busy: boolean;
  readonly date: string;
  readonly commit: string;
  readonly machine: string;
  readonly loadBefore: number;
  readonly measures: readonly Measure[];
}

export function renderPerformance(found: {
  readonly ledgers: readonly Ledger[];
  readonly reasons: Readonly<Record<string, string>>;
}): { readonly page: string; readonly pictures: ReadonlyMap<string, string> };
