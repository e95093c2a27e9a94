/** The names of log segments, which say what part of the log they hold. */
import { lsnBytes } from './moments.ts';

export const segmentBytes = 16n * 1024n * 1024n;
const segmentsOfName = 0x100n;

export function segmentAt(timeline: number, lsn: string): string {
  return segmentNumbered(timeline, lsnBytes(lsn) / segmentBytes);
}

/** `number` counts segments from the beginning of the log. */
export function segmentNumbered(timeline: number, number: bigint): string {
  const parts = [BigInt(timeline), number / segmentsOfName, number % segmentsOfName];
  return parts.map((part) => part.toString(16).toUpperCase().padStart(8, '0')).join('');
}

export const isSegment = (name: string) => /^[0-9A-F]{24}$/.test(name);
