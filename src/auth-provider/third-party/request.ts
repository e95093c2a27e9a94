/**
 * Requests to OAuth providers: bounded in time and size, and never redirected, because they carry secrets. Addresses
 * come from Catnap itself or from its operator, or from a document that one of those serves.
 */
import { isWebLoopback } from '../../lib/oauth-issuers.ts';
import { ThirdPartyFailure } from './failure.ts';

const timeoutMs = 10_000;
/** Far more than any metadata, key set or profile. */
const replyBytesMax = 512 * 1024;

export type Json = { readonly [key: string]: unknown };

export interface ThirdPartyRequest {
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as a form, by POST. */
  readonly form?: Readonly<Record<string, string>>;
}

export interface ThirdPartyReply {
  readonly status: number;
  readonly body: unknown;
}

/** The reply, whatever its status; `what` names the endpoint in the log. */
export async function ask(what: string, url: string, request: ThirdPartyRequest = {}): Promise<ThirdPartyReply> {
  const { status, text } = await exchange(what, url, request);
  try {
    return { status, body: JSON.parse(text) };
  } catch (error) {
    throw new ThirdPartyFailure('unavailable', `the ${what} answered ${status} with something that is no JSON`, error);
  }
}

/** The body of a good reply. */
export async function askObject(what: string, url: string, request: ThirdPartyRequest = {}): Promise<Json> {
  const { status, body } = await ask(what, url, request);
  if (status < 200 || status > 299) throw new ThirdPartyFailure('unavailable', `the ${what} answered ${status}`);
  return requireObject(what, body);
}

export function requireObject(what: string, body: unknown): Json {
  if (typeof body === 'object' && body !== null && !Array.isArray(body)) return body as Json;
  throw new ThirdPartyFailure('unavailable', `the ${what} did not answer with a JSON object`);
}

async function exchange(what: string, url: string, { headers = {}, form }: ThirdPartyRequest) {
  requireSafe(what, url);
  try {
    const reply = await fetch(url, {
      method: form === undefined ? 'GET' : 'POST',
      headers: { accept: 'application/json', 'user-agent': 'catnap', ...headers },
      ...(form === undefined ? {} : { body: new URLSearchParams(form) }),
      redirect: 'error',
      signal: AbortSignal.timeout(timeoutMs),
    });
    return { status: reply.status, text: await readBounded(reply) };
  } catch (error) {
    throw new ThirdPartyFailure('unavailable', `the ${what} does not answer`, error);
  }
}

async function readBounded(reply: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of reply.body ?? []) {
    length += chunk.length;
    if (length > replyBytesMax) throw new Error(`the reply is longer than ${replyBytesMax} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function requireSafe(what: string, url: string): void {
  const isSafe = URL.canParse(url) && (new URL(url).protocol === 'https:' || isWebLoopback(url));
  if (!isSafe) throw new ThirdPartyFailure('unavailable', `the address of the ${what} is not https`);
}
