/**
 * Reads a set of public keys at a URL that a tenant has named: within a time, up to a size, without following
 * redirects, and never from an address that the policy forbids, whatever the name resolves to by then.
 */
import { lookup } from 'node:dns';
import { type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import type { LookupFunction } from 'node:net';
import type { JSONWebKeySet } from 'jose';
import { hostOf, isInternalAddress, type OutboundPolicy, refusalOfUrl } from '../lib/outbound.ts';

const timeoutMs = 5_000;
const replyBytesMax = 256 * 1024;
const keysMax = 100;

/** Rejects with an error that says what is wrong. */
export async function fetchKeySet(text: string, policy: OutboundPolicy): Promise<JSONWebKeySet> {
  const refusal = refusalOfUrl(text, policy);
  if (refusal !== null) throw new Error(`the URL ${refusal}`);
  const url = new URL(text);
  const mayBePrivate = policy.allowPrivate || url.origin === policy.ownOrigin;
  if (!mayBePrivate && isInternalAddress(hostOf(url))) throw new Error('the address is private');
  const reply = await get(url, mayBePrivate ? undefined : publicLookup);
  return parseKeySet(reply);
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

function get(url: URL, ownLookup: LookupFunction | undefined): Promise<string> {
  return new Promise((resolve, reject) => {
    const open = url.protocol === 'https:' ? requestHttps : requestHttp;
    const request = open(url, {
      headers: { accept: 'application/json', 'user-agent': 'catnap' },
      signal: AbortSignal.timeout(timeoutMs),
      agent: false,
      ...(ownLookup && { lookup: ownLookup }),
    });
    request.once('error', reject);
    request.once('response', (response) => readReply(response).then(resolve, reject));
    request.end();
  });
}

async function readReply(response: IncomingMessage): Promise<string> {
  if (response.statusCode !== 200) {
    response.destroy();
    throw new Error(`the reply has status ${response.statusCode}`);
  }
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    length += chunk.length;
    // Leaving the loop closes the connection.
    if (length > replyBytesMax) throw new Error(`the reply is longer than ${replyBytesMax} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function parseKeySet(text: string): JSONWebKeySet {
  const parsed: unknown = JSON.parse(text);
  const keys: unknown = typeof parsed === 'object' && parsed !== null && 'keys' in parsed ? parsed.keys : undefined;
  if (!Array.isArray(keys) || keys.length > keysMax) throw new Error(`the reply has no list of up to ${keysMax} keys`);
  if (keys.some((key) => typeof key !== 'object' || key === null)) throw new Error('the reply has a key that is none');
  return { keys };
}
