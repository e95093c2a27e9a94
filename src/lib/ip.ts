/** IP addresses: lists of allowed ones, which are private, and what counts as one client where clients are counted. */
import { BlockList, isIP, isIPv6 } from 'node:net';

type Family = 'ipv4' | 'ipv6';

export type IpRule =
  | { readonly kind: 'address'; readonly family: Family; readonly address: string }
  | { readonly kind: 'block'; readonly family: Family; readonly address: string; readonly bits: number }
  | { readonly kind: 'range'; readonly family: Family; readonly first: string; readonly last: string };

/** An address, a CIDR block or a range `first-last`; null for anything else. */
export function parseIpRule(text: string): IpRule | null {
  const [first = '', last, ...rest] = text.split(/[-/]/);
  const version = isIP(first);
  if (version === 0 || rest.length > 0) return null;
  const family = familyOf(first);
  if (last === undefined) return { kind: 'address', family, address: first };
  if (text.includes('-')) return isIP(last) === version ? { kind: 'range', family, first, last } : null;
  const isBlock = /^\d{1,3}$/.test(last) && Number(last) <= (version === 4 ? 32 : 128);
  return isBlock ? { kind: 'block', family, address: first, bits: Number(last) } : null;
}

/** Whether every address of one CIDR block is in another. */
export function isBlockWithin(inner: string, outer: string): boolean {
  const [small, large] = [parseIpRule(inner), parseIpRule(outer)];
  if (small?.kind !== 'block' || large?.kind !== 'block') return false;
  const list = new BlockList();
  list.addSubnet(large.address, large.bits, large.family);
  return large.bits <= small.bits && list.check(small.address, small.family);
}

/** Of an address. Node's own test for IPv6 is a regular expression that takes 9 ms to compile, in every process. */
export const familyOf = (address: string): Family => (address.includes(':') ? 'ipv6' : 'ipv4');

/** An IPv4 address in its IPv6 form (`::ffff:1.2.3.4`, from a socket that listens on both) as plain IPv4. */
export function plainAddress(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address);
  return mapped?.[1] ?? address;
}

/** Loopback, RFC 1918, link-local, shared (RFC 6598) and unique local addresses: none of them is routed publicly. */
const privateBlocks: readonly (readonly [address: string, bits: number])[] = [
  ['127.0.0.0', 8],
  ['10.0.0.0', 8],
  ['172.16.0.0', 12],
  ['192.168.0.0', 16],
  ['169.254.0.0', 16],
  ['100.64.0.0', 10],
  ['::1', 128],
  ['fc00::', 7],
  ['fe80::', 10],
];
const privateAddresses = new BlockList();
for (const [address, bits] of privateBlocks) privateAddresses.addSubnet(address, bits, familyOf(address));

/** False for anything that is no address. A link-local address may carry its interface (`fe80::1%eth0`). */
export function isPrivateAddress(text: string): boolean {
  const address = plainAddress(text.replace(/%.*$/, ''));
  return isIP(address) !== 0 && privateAddresses.check(address, familyOf(address));
}

/** The key of a client that is counted by address: of IPv6 the first 64 bits, since one host controls the rest. */
export function clientKey(address: string): string {
  if (!isIPv6(address) || address.includes('.')) return address;
  const [head = '', tail] = address.split('%', 1)[0]?.split('::') ?? [];
  const groups = head === '' ? [] : head.split(':');
  const behind = tail ? tail.split(':') : [];
  const missing = tail === undefined ? 0 : 8 - groups.length - behind.length;
  return [...groups, ...Array<string>(missing).fill('0'), ...behind].slice(0, 4).join(':');
}

export function isLoopback(address: string): boolean {
  return address === '::1' || address.startsWith('127.');
}
