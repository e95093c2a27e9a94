/**
 * What a tree of control groups can do, whichever version the kernel has: one group for each compute, its limits and
 * its counters. Names are endpoint ids. The files are the kernel's own: tiny, and never on a disk.
 */
import { readFileSync } from 'node:fs';
import type { ComputeLimits } from '../../../../lib/model.ts';
import type { ComputeSample } from '../../../interface/driver.ts';

export interface GroupLimits extends Omit<ComputeLimits, 'cpus' | 'settings'> {
  /** Null for no limit. */
  readonly cpus: number | null;
}

export type GroupCounters = Omit<ComputeSample, 'endpointId' | 'isEnforced'>;

export interface CgroupTree {
  readonly version: 1 | 2;
  /** Creates the group, or reuses the existing one; returns the files through which a process enters it. */
  create(name: string, limits: GroupLimits): string[];
  setCpus(name: string, cpus: number | null): Promise<void>;
  /** False when memory in use keeps the limit higher than requested. */
  setLimits(name: string, limits: GroupLimits): Promise<boolean>;
  /** Null for a group that does not exist. */
  read(name: string): GroupCounters | null;
  has(name: string): boolean;
  /** False while the group contains processes. */
  remove(name: string): Promise<boolean>;
  names(): Promise<string[]>;
}

/** The quota is for each 100 ms; unused quota may be used later, up to one period's worth. */
export const periodUs = 100_000;
/** The kernel accepts no less. */
const quotaUsMin = 1_000;
export const quotaUs = (cpus: number) => Math.max(quotaUsMin, Math.round(cpus * periodUs));

export const pageBytes = 4096;
/** Room left above what is in use: with less, the kernel would have to kill. */
export const roomAboveUse = 1.05;

/** Parses lines of `name value`. */
export function readKeyed(text: string): (name: string) => number {
  const values = new Map(text.split('\n').map((line) => line.split(' ') as [string, string]));
  return (name) => Number(values.get(name) ?? 0);
}

/**
 * Null where there is no such file: the group is gone, or the kernel lacks it. Synchronous, because a thread that waits
 * for it costs more than the read: for the files of a thousand computes 1.2 s of CPU instead of 0.1.
 */
export function readKernelFile(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (isGone(error)) return null;
    throw error;
  }
}

export const isGone = (error: unknown) => hasCode(error, 'ENOENT', 'ENODEV');
export const hasCode = (error: unknown, ...codes: string[]) =>
  error instanceof Error && codes.includes((error as NodeJS.ErrnoException).code ?? '');
