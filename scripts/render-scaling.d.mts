import type { Ledger } from './render-performance.mjs';

export function renderScaling(ledgers: readonly Ledger[]): string | null;
