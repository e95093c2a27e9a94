import type { RouteFacts } from '../src/api/plugins/route-table.ts';
import type { PublishedOperation } from './published-api.mjs';

/** One foreign suite, as `docs/compatibility/suites.json` records it; a number is of tests that passed. */
export interface Suite {
  readonly name: string;
  readonly version: string;
  readonly tests: number;
  /** On a plain Postgres server. */
  readonly control: number;
  readonly direct: number;
  /** Null where no run has come to its end. */
  readonly pooled: number | null;
  readonly differences: readonly { readonly what: string; readonly why: string }[];
  readonly date: string;
}

interface WithReason {
  readonly why: string;
  readonly names: readonly string[];
}

/** A program made for the hosted service, as `docs/compatibility/clients.json` records it. */
export interface ForeignClient {
  readonly name: string;
  readonly version: string;
  /** The names of its commands or methods. */
  readonly served: readonly string[];
  /** Answered with 501: the client shows the reason. */
  readonly refused: readonly string[];
  readonly failing: readonly WithReason[];
  readonly notRun: readonly WithReason[];
}

export function renderCompatibility(found: {
  readonly operations: readonly PublishedOperation[];
  readonly packages: readonly { readonly name: string; readonly version: string }[];
  readonly routes: readonly RouteFacts[];
  readonly clients: readonly ForeignClient[];
  readonly suites: readonly Suite[];
}): string;
