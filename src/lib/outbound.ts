/**
 * Which addresses Catnap reaches on behalf of a tenant. A URL that somebody has typed in must not become a way into the
 * operator's network: without permission only public addresses are reached, and only over https.
 */
import { BlockList } from 'node:net';
import type { Config } from './config.ts';
import { familyOf, isLoopback, plainAddress } from './ip.ts';

export interface OutboundPolicy {
  /** Addresses of this machine and of private networks may be reached too. */
  readonly allowPrivate: boolean;
  /** The origin of Catnap's own HTTP port, which may always be reached: its auth provider has key sets too. */
  readonly ownOrigin: string;
  /** Plain HTTP may leave this machine where private addresses are allowed; otherwise it stays on loopback. */
  readonly allowPlain?: boolean;
}

export function outboundPolicy(config: Pick<Config, 'privateKeySets' | 'publicUrl'>): OutboundPolicy {
  return { allowPrivate: config.privateKeySets, ownOrigin: new URL(config.publicUrl).origin };
}

/**
 * For the webhooks of projects. Catnap's own port is no exception for them: nobody needs it to be told of events. Plain
 * HTTP may go to private networks, where they may be reached.
 */
export function webhookPolicy(config: Pick<Config, 'privateKeySets'>): OutboundPolicy {
  return { allowPrivate: config.privateKeySets, ownOrigin: '', allowPlain: true };
}

const urlLengthMax = 2_048;

/** What is wrong with a URL as it is written, or null. What its name resolves to is checked at each fetch. */
export function refusalOfUrl(text: string, policy: OutboundPolicy): string | null {
  if (text.length > urlLengthMax) return `must have at most ${urlLengthMax} characters`;
  if (!URL.canParse(text)) return 'must be a URL';
  const url = new URL(text);
  if (url.username !== '' || url.password !== '' || url.hash !== '') return 'must have no user, password or fragment';
  if (url.origin === policy.ownOrigin) return null;
  const host = hostOf(url);
  const isLocal = host === 'localhost' || isLoopback(host);
  const mayBePlain = policy.allowPrivate && (isLocal || policy.allowPlain === true);
  const protocols = mayBePlain ? ['https:', 'http:'] : ['https:'];
  if (!protocols.includes(url.protocol)) return `must start with ${protocols.map((one) => `${one}//`).join(' or ')}`;
  if (!policy.allowPrivate && isInternalHost(host)) {
    return 'must not be an address of this machine or of a private network';
  }
  return null;
}

/** As it is written; a name that is none of this machine may still resolve to an internal address. */
export function isInternalHost(host: string): boolean {
  const name = host.replace(/\.$/, '');
  return name === 'localhost' || name.endsWith('.localhost') || isLoopback(name) || isInternalAddress(name);
}

/** Without the brackets of IPv6. */
export const hostOf = (url: URL) => url.hostname.replace(/^\[(.*)\]$/, '$1');

const notPublic = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
  ['::', 96],
  // Addresses that carry an IPv4 address inside: mapped, translated, Teredo and 6to4.
  ['::ffff:0:0', 96],
  ['::ffff:0:0:0', 96],
  ['64:ff9b::', 96],
  ['64:ff9b:1::', 48],
  ['2001::', 32],
  ['2002::', 16],
  ['100::', 64],
  ['fc00::', 7],
  ['fe80::', 10],
  ['fec0::', 10],
  ['ff00::', 8],
] as const;

// One list for each family: a single one would take an IPv4 address for its mapped form.
const blocked = { ipv4: new BlockList(), ipv6: new BlockList() };
for (const [address, bits] of notPublic) blocked[familyOf(address)].addSubnet(address, bits, familyOf(address));

/** Not reachable from the internet; wider than what may connect as private. False for what is no address. */
export function isInternalAddress(address: string): boolean {
  const plain = plainAddress(address);
  return blocked[familyOf(plain)].check(plain, familyOf(plain));
}
