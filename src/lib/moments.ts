/** Moments in a branch's past, named by a time or by a position in its write-ahead log (LSN). */

/** `at` is ISO 8601 and keeps the microseconds that a caller has sent. */
export type Moment = { readonly kind: 'time'; readonly at: string } | { readonly kind: 'lsn'; readonly lsn: string };

/** A position in the log, and a time at which the log had reached it. */
export interface LogPosition {
  readonly at: string;
  readonly lsn: string;
}

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
