/**
 * One request to a URL that somebody has typed in: within a time, without following redirects, and never to an address
 * that the policy forbids, whatever the name resolves to by then.
 */
import { lookup } from 'node:dns';
import { type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import type { LookupFunction } from 'node:net';
import { hostOf, isInternalAddress, type OutboundPolicy, refusalOfUrl } from './outbound.ts';

export interface OutboundRequest {
  readonly headers: Readonly<Record<string, string>>;
  /** For the whole of it, up to the last byte of the reply. */
  readonly timeoutMs: number;
  /** Sent by POST; without one the request is a GET. */
  readonly body?: string;
}

/** The head of the reply, whatever its status; the caller reads the rest or destroys it. */
export async function sendOutbound(
  text: string,
  policy: OutboundPolicy,
  { headers, timeoutMs, body }: OutboundRequest,
): Promise<IncomingMessage> {
  const refusal = refusalOfUrl(text, policy);
  if (refusal !== null) throw new Error(`the URL ${refusal}`);
  const url = new URL(text);
  const mayBePrivate = policy.allowPrivate || url.origin === policy.ownOrigin;
  if (!mayBePrivate && isInternalAddress(hostOf(url))) throw new Error('the address is private');
  return new Promise((resolve, reject) => {
    const open = url.protocol === 'https:' ? requestHttps : requestHttp;
    const request = open(url, {
      method: body === undefined ? 'GET' : 'POST',
      headers: body === undefined ? headers : { ...headers, 'content-length': Buffer.byteLength(body) },
      signal: AbortSignal.timeout(timeoutMs),
      agent: false,
      ...(mayBePrivate ? {} : { lookup: publicLookup }),
    });
    request.once('error', reject);
    request.once('response', resolve);
    request.end(body);
  });
}

/** The address that was checked is the one that is dialled: a second lookup could be answered differently. */
const publicLookup: LookupFunction = (hostname, options, callback) => {
  lookup(hostname, { ...options, all: true }, (error, addresses) => {
    if (error) return callback(error, '');
    const [first] = addresses;
    if (first === undefined || addresses.some(({ address }) => isInternalAddress(address))) {
      return callback(new Error('the name resolves to a private address'), '');
    }
    if (options.all) callback(null, addresses);
    else callback(null, first.address, first.family);
  });
};
