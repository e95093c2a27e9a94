/** Names of WAL segments: our clusters use 16 MB each, so 256 of them advance the name's middle part by one. */

const segmentPattern = /^[0-9A-F]{24}$/;
export const segmentBytes = 16n * 1024n * 1024n;
const segmentsPerStep = 256;
/** A record that begins this close to the end of a segment may continue in the next one. */
const recordBytesMax = 8_192n;

export const isSegment = (name: unknown): name is string => typeof name === 'string' && segmentPattern.test(name);

/** Which timeline a segment is on, and how many segments are before it. */
export function parseSegment(name: string): { readonly timeline: number; readonly at: number } {
  const hex = (from: number, to: number) => Number.parseInt(name.slice(from, to), 16);
  return { timeline: hex(0, 8), at: hex(8, 16) * segmentsPerStep + hex(16, 24) };
}

export function segmentsBetween(first: string, last: string): Set<string> {
  const timeline = Number.parseInt(first.slice(0, 8), 16);
  const [from, to] = [parseSegment(first).at, parseSegment(last).at];
  if (last.slice(0, 8) !== first.slice(0, 8) || to < from || to - from > 1_000_000) {
    throw new Error(`no WAL leads from ${first} to ${last}`);
  }
  return new Set(Array.from({ length: to - from + 1 }, (_, index) => segmentName(timeline, from + index)));
}

/** The segments between two positions, including the record at the second one. */
export function segmentsOf(timeline: number, from: bigint, to: bigint): Set<string> {
  const [first, last] = [from / segmentBytes, (to + recordBytesMax) / segmentBytes];
  return segmentsBetween(segmentName(timeline, Number(first)), segmentName(timeline, Number(last)));
}

/** `at` counts segments from the beginning of the log. */
export function segmentName(timeline: number, at: number): string {
  const hex = (value: number) => value.toString(16).toUpperCase().padStart(8, '0');
  return `${hex(timeline)}${hex(Math.floor(at / segmentsPerStep))}${hex(at % segmentsPerStep)}`;
}
