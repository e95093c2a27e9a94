/** What an entry of the list of allowed addresses may be. The proxy lets nobody in by an entry it cannot read. */
import { isIP } from 'node:net';

export function isIpRule(text: string): boolean {
  const [first = '', last, ...rest] = text.split(/[-/]/);
  const version = isIP(first);
  if (version === 0 || rest.length > 0) return false;
  if (last === undefined) return true;
  if (text.includes('-')) return isIP(last) === version;
  return /^\d{1,3}$/.test(last) && Number(last) <= (version === 4 ? 32 : 128);
}
