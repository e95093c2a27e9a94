/** Moments in a branch's past, named by a time or by a position in its write-ahead log (LSN). */

/** `at` is ISO 8601 and keeps the microseconds that a caller has sent. */
export type Moment = { readonly kind: 'time'; readonly at: string } | { readonly kind: 'lsn'; readonly lsn: string };

/** A position in the log, and a time at which the log had reached it. */
export interface LogPosition {
  readonly at: string;
  readonly lsn: string;
}

const timePattern = /^\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}(?:\.(?<fraction>\d{1,9}))?(?:[Zz]|[+-]\d{2}:\d{2})$/;

/** A time as callers send it (RFC 3339), in UTC and with at most six decimals; null if it is none. */
export function readTime(text: string): string | null {
  const { groups } = timePattern.exec(text) ?? {};
  const ms = groups && Date.parse(text.toUpperCase().replace(' ', 'T'));
  if (ms === undefined || Number.isNaN(ms) || Math.abs(ms) > latestMs) return null;
  const fraction = groups?.fraction?.slice(0, 6);
  return `${new Date(ms).toISOString().slice(0, 19)}${fraction === undefined ? '' : `.${fraction}`}Z`;
}

/** The end of the year 9999, after which years have more than four digits. */
const latestMs = Date.UTC(9999, 11, 31);

const lsnPattern = /^([0-9A-Fa-f]{1,8})\/([0-9A-Fa-f]{1,8})$/;

export const isLsn = (text: string) => lsnPattern.test(text);

/** An LSN as the number of bytes since the log began. */
export function lsnBytes(lsn: string): bigint {
  const [, high, low] = lsnPattern.exec(lsn) ?? [];
  if (high === undefined || low === undefined) throw new Error(`not an LSN: ${JSON.stringify(lsn)}`);
  return (BigInt(`0x${high}`) << 32n) + BigInt(`0x${low}`);
}

/** The form in which Postgres prints it. */
export function lsnText(bytes: bigint): string {
  const hex = (value: bigint) => value.toString(16).toUpperCase();
  return `${hex(bytes >> 32n)}/${hex(bytes & 0xffff_ffffn)}`;
}

/** Oldest first. Two that a clock gives the same time are in the order of the log. */
export function byAge(a: LogPosition, b: LogPosition): number {
  if (a.at !== b.at) return a.at < b.at ? -1 : 1;
  return lsnBytes(a.lsn) < lsnBytes(b.lsn) ? -1 : 1;
}
