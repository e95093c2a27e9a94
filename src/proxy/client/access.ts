/** Who may use an endpoint besides knowing a password. Asked after authentication only: strangers learn nothing. */
import { BlockList, isIP } from 'node:net';
import { CatnapError } from '../../lib/errors.ts';
import type { LoginFacts } from '../kit/control-plane.ts';

export function requireAccess(facts: LoginFacts, address: string): void {
  if (!isAllowed(facts.allowedIps, address)) {
    throw new CatnapError(
      'forbidden',
      `This IP address ${address} is not allowed to connect to this endpoint. ` +
        'Please add it to the allowed list of the project. Make sure to check for IPv4 or IPv6 addresses.',
    );
  }
  if (facts.disabled) {
    throw new CatnapError('precondition_failed', 'Control plane request failed: endpoint is disabled');
  }
}

/** An entry that cannot be read allows nobody. */
export function isAllowed(allowedIps: readonly string[], address: string): boolean {
  if (allowedIps.length === 0) return true;
  const list = new BlockList();
  for (const entry of allowedIps) addEntry(list, entry.trim());
  return isIP(address) !== 0 && list.check(address, family(address));
}

/** IPv4 in IPv6 clothes (`::ffff:1.2.3.4`, from a socket that listens on both) is IPv4. */
export function plainAddress(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address);
  return mapped?.[1] ?? address;
}

function addEntry(list: BlockList, entry: string): void {
  const [first = '', last] = entry.split(/[-/]/, 2);
  if (isIP(first) === 0) return;
  if (entry.includes('/')) {
    const bits = /^\d{1,3}$/.test(last ?? '') ? Number(last) : Number.NaN;
    if (bits <= (isIP(first) === 4 ? 32 : 128)) list.addSubnet(first, bits, family(first));
  } else if (last === undefined) {
    list.addAddress(first, family(first));
  } else if (isIP(last) === isIP(first)) {
    addRange(list, first, last);
  }
}

function addRange(list: BlockList, first: string, last: string): void {
  try {
    list.addRange(first, last, family(first));
  } catch {
    // The end lies before the start: an empty range.
  }
}

function family(address: string): 'ipv4' | 'ipv6' {
  return isIP(address) === 6 ? 'ipv6' : 'ipv4';
}
