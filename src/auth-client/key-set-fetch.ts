/**
 * Reads a set of public keys at a URL that a tenant has named: within a time, up to a size, without following
 * redirects, and never from an address that the policy forbids, whatever the name resolves to by then.
 */
import type { IncomingMessage } from 'node:http';
import type { JSONWebKeySet } from 'jose';
import type { OutboundPolicy } from '../lib/outbound.ts';
import { sendOutbound } from '../lib/outbound-request.ts';

const timeoutMs = 5_000;
const replyBytesMax = 256 * 1024;
const keysMax = 100;

/** Rejects with an error that says what is wrong. */
export async function fetchKeySet(text: string, policy: OutboundPolicy): Promise<JSONWebKeySet> {
  const headers = { accept: 'application/json', 'user-agent': 'catnap' };
  return parseKeySet(await readReply(await sendOutbound(text, policy, { headers, timeoutMs })));
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
