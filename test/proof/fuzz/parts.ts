/**
 * The two parts of `npm run fuzz`. Each has a file of its own, and with it a process: they run side by side, and the
 * heap of one holds nothing of the other.
 */
import type { ProofOptions } from '../ledger.ts';

export const isAsked = ({ only }: ProofOptions, part: 'api' | 'postgres') => only.length === 0 || only.includes(part);

export const secondsSince = (began: number) => Math.round((performance.now() - began) / 1_000);
