/** What a client needs besides a password. Checked after authentication only: before it, a client learns nothing. */
import { BlockList, isIP } from 'node:net';
import { CatnapError } from '../../lib/errors.ts';
import { familyOf, type IpRule, isPrivateAddress, parseIpRule } from '../../lib/ip.ts';
import type { AccessRules, LoginFacts } from '../kit/control-plane.ts';
import type { Route } from './route.ts';

export function requireAccess(facts: LoginFacts, address: string): void {
  const refusal = refusalOf(facts, address);
  if (refusal !== null) throw refusal;
  if (facts.disabled) {
    throw new CatnapError('precondition_failed', 'Control plane request failed: endpoint is disabled');
  }
}

/** Null for an address that may connect. */
export function refusalOf({ publicBlocked, allowedIps }: AccessRules, address: string): CatnapError | null {
  const refuse = (reason: string) =>
    new CatnapError('forbidden', `This IP address ${address} is not allowed to connect to this endpoint. ${reason}`);
  if (publicBlocked && !isPrivateAddress(address)) {
    return refuse('The project blocks public connections: only loopback and private addresses may connect.');
  }
  if (isAllowed(allowedIps, address)) return null;
  return refuse('Please add it to the allowed list of the project. Make sure to check for IPv4 or IPv6 addresses.');
}

export function requirePooler(facts: LoginFacts, route: Route): void {
  if (!route.pooled || facts.poolerEnabled !== false) return;
  throw new CatnapError(
    'precondition_failed',
    'Connection pooling is disabled for this endpoint. ' +
      'Please connect without "-pooler" in the endpoint ID, or set pooler_enabled of the endpoint to true.',
  );
}

/** An entry that cannot be read allows nobody. */
export function isAllowed(allowedIps: readonly string[], address: string): boolean {
  if (allowedIps.length === 0) return true;
  const list = new BlockList();
  for (const entry of allowedIps) addEntry(list, entry.trim());
  return isIP(address) !== 0 && list.check(address, familyOf(address));
}

function addEntry(list: BlockList, entry: string): void {
  const rule = parseIpRule(entry);
  if (rule?.kind === 'address') list.addAddress(rule.address, rule.family);
  if (rule?.kind === 'block') list.addSubnet(rule.address, rule.bits, rule.family);
  if (rule?.kind === 'range') addRange(list, rule);
}

function addRange(list: BlockList, { first, last, family }: Extract<IpRule, { kind: 'range' }>): void {
  try {
    list.addRange(first, last, family);
  } catch {
    // The end lies before the start: an empty range.
  }
}
