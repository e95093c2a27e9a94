/** The names of log segments, which say what part of the log they hold. */
import { lsnBytes } from '../lib/moments.ts';

export const segmentBytes = 16n * 1024n * 1024n;
const segmentsOfName = 0x100n;

export function segmentAt(timeline: number, lsn: string): string {
  return segmentName(timeline, lsnBytes(lsn) / segmentBytes);
}

function segmentName(timeline: number, number: bigint): string {
  const hex = (value: bigint) => value.toString(16).toUpperCase().padStart(8, '0');
  return `${hex(BigInt(timeline))}${hex(number / segmentsOfName)}${hex(number % segmentsOfName)}`;
}

/** The segments that hold the log from one position to another, the latter's included if the log has begun it. */
export function segmentsBetween(timeline: number, from: string, until: string): string[] {
  const [first, end] = [lsnBytes(from) / segmentBytes, lsnBytes(until)];
  const names: string[] = [];
  for (let number = first; number * segmentBytes < end; number++) names.push(segmentName(timeline, number));
  return names;
}

export const isSegment = (name: string) => /^[0-9A-F]{24}$/.test(name);
export const isTimelineHistory = (name: string) => /^[0-9A-F]{8}\.history$/.test(name);
