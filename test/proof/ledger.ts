/**
 * What a long run was asked for (`scripts/proof.mjs` hands it over), and what it leaves: with `--write`, a file of
 * figures in `docs/reliability`, from which `npm run generate` makes docs/reliability.md.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { arch, cpus, platform } from 'node:os';
import { fileURLToPath } from 'node:url';

export interface ProofOptions {
  readonly seed: number;
  /** How many inputs, faults or schedules; null for as many as the tool thinks are worth a long run. */
  readonly count: number | null;
  /** No more is begun after this time. */
  readonly minutes: number | null;
  /** Names of single parts, where a tool has several; empty for all. */
  readonly only: readonly string[];
  readonly write: boolean;
  readonly commit: string;
}

export interface Ledger {
  readonly seed: number;
  readonly seconds: number;
  /** `{ 'faults': 1_000, 'acknowledged rows': 144_201, 'rows lost': 0 }` */
  readonly totals: Readonly<Record<string, number>>;
  readonly tables: readonly LedgerTable[];
}

export interface LedgerTable {
  readonly title: string;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly (string | number)[])[];
}

export function proofOptions(): ProofOptions {
  const given = process.env.CATNAP_PROOF;
  if (given === undefined) throw new Error('long runs are started with scripts/proof.mjs');
  return JSON.parse(given);
}

/** `name` is that of the file, and with it that of the chapter: `chaos`, `fuzz-api`. */
export function keepLedger(name: string, ledger: Ledger, { write, commit }: ProofOptions): void {
  process.stdout.write(`${name}: ${JSON.stringify(ledger.totals)}\n`);
  if (!write) return;
  const folder = fileURLToPath(new URL('../../docs/reliability', import.meta.url));
  mkdirSync(folder, { recursive: true });
  const machine = `${cpus().length} cores, ${arch()}, ${platform()}`;
  const date = new Date().toISOString().slice(0, 10);
  writeFileSync(`${folder}/${name}.json`, `${JSON.stringify({ name, date, commit, machine, ...ledger }, null, 2)}\n`);
}
