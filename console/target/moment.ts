/** A moment of a branch's past: as people write it, as the API takes it, and as part of a connection string. */

/** A time with its zone, or a position in the log. */
export interface Moment {
  readonly lsn?: string;
  readonly timestamp?: string;
}

const isLsn = (text: string) => text.includes('/');

/** A time as people write it is one of this browser; the API wants to know the zone. */
export function momentOf(text: string): Moment {
  const given = text.trim();
  if (isLsn(given)) return { lsn: given };
  const time = new Date(given.replace(' ', 'T'));
  return { timestamp: Number.isNaN(time.getTime()) ? given : time.toISOString() };
}

const twoDigits = (value: number) => String(value).padStart(2, '0');

/** In the time of this browser, to the second. */
export function localText(at: string | number): string {
  const time = new Date(at);
  const day = [time.getFullYear(), twoDigits(time.getMonth() + 1), twoDigits(time.getDate())].join('-');
  return `${day} ${[time.getHours(), time.getMinutes(), time.getSeconds()].map(twoDigits).join(':')}`;
}

/** For an address: what it was given, in one word. */
export const momentWord = ({ lsn, timestamp }: Moment) => lsn ?? timestamp ?? '';

/** Connects to the branch as it was then, read-only, beside what it is. */
export function uriAt(uri: string, word: string): string {
  const url = new URL(uri);
  const option = isLsn(word) ? `neon_lsn:${word}` : `neon_timestamp:${word}`;
  const options = [url.searchParams.get('options'), option].filter(Boolean).join(' ');
  url.searchParams.delete('options');
  // Not by searchParams, which write a space as a plus sign; Postgres reads that as one.
  const rest = url.searchParams.toString();
  url.search = `${rest === '' ? '' : `${rest}&`}options=${encodeURIComponent(options)}`;
  return url.toString();
}
