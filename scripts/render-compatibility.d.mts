import type { RouteFacts } from '../src/api/plugins/route-table.ts';
import type { PublishedOperation } from './published-api.mjs';

/** One foreign suite, as `docs/compatibility/suites.json` records it; a number is of tests that passed. */
export interface Suite {
  readonly name: string;
  readonly version: string;
  readonly tests: number;
  /** On a plain Postgres server; null where it was not run. */
  readonly control: number | null;
  readonly direct: number | null;
  readonly pooled: number | null;
  readonly differences: readonly { readonly what: string; readonly why: string }[];
  readonly date: string;
}

export function renderCompatibility(found: {
  readonly operations: readonly PublishedOperation[];
  readonly packages: readonly { readonly name: string; readonly version: string }[];
  readonly routes: readonly RouteFacts[];
  readonly suites: readonly Suite[];
}): string;
