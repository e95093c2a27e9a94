/**
 * The SCRAM-SHA-256 conversation (RFC 5802, RFC 7677, RFC 5929) as pure steps, both sides. The server side works from
 * a stored verifier and recovers the client's key from its proof; the client side logs in with that key, so that
 * a password never passes through here.
 */
import { randomBytes, timingSafeEqual } from 'node:crypto';
import { decodeBase64, hmac, keyBytes, type ScramKeys, type ScramVerifier, sha256 } from '../../lib/scram-verifier.ts';
import { ProtocolError } from './wire.ts';

export const scramMechanism = 'SCRAM-SHA-256';
export const scramPlusMechanism = 'SCRAM-SHA-256-PLUS';

const bindingType = 'tls-server-end-point';
const nonceBytes = 18;

export function offeredMechanisms(channelBinding: Buffer | null): string[] {
  return channelBinding === null ? [scramMechanism] : [scramPlusMechanism, scramMechanism];
}

export interface ClientFirst {
  readonly gs2Header: string;
  readonly bare: string;
  readonly nonce: string;
  /** True when the client bound the exchange to the TLS channel. */
  readonly bound: boolean;
}

/** Checks that the client's channel binding flag fits the mechanism that it chose and those that were offered. */
export function parseClientFirst(text: string, mechanism: string, offered: readonly string[]): ClientFirst {
  if (!offered.includes(mechanism)) throw new ProtocolError('client selected an invalid SASL mechanism');
  // gs2 flag, no authorization identity, then name and nonce; an unknown mandatory extension (m=) is not accepted.
  const match = /^((n|y|p=([A-Za-z0-9.-]+)),,)(n=[^,]*,r=([\x21-\x2b\x2d-\x7e]+)(?:,[A-Za-z]=[^,]*)*)$/.exec(text);
  if (!match) throw new ProtocolError('malformed SCRAM message');
  const [, gs2Header = '', flag = '', binding, bare = '', nonce = ''] = match;
  const bound = mechanism === scramPlusMechanism;
  if (bound !== flag.startsWith('p')) {
    throw new ProtocolError('malformed SCRAM message: channel binding does not fit the mechanism');
  }
  if (bound && binding !== bindingType) throw new ProtocolError('unsupported SCRAM channel-binding type');
  // "y" means that the client was offered no PLUS; if it was offered, somebody in the middle has removed it.
  if (flag === 'y' && offered.includes(scramPlusMechanism)) {
    throw new ProtocolError('SCRAM channel binding negotiation error');
  }
  return { gs2Header, bare, nonce, bound };
}

export interface ServerExchange {
  readonly clientFirst: ClientFirst;
  readonly verifier: ScramVerifier;
  readonly nonce: string;
  readonly serverFirst: string;
}

export function startServerExchange(
  clientFirst: ClientFirst,
  verifier: ScramVerifier,
  serverNonce: string = randomBytes(nonceBytes).toString('base64'),
): ServerExchange {
  const nonce = clientFirst.nonce + serverNonce;
  const serverFirst = `r=${nonce},s=${verifier.salt.toString('base64')},i=${verifier.iterations}`;
  return { clientFirst, verifier, nonce, serverFirst };
}

export interface Proven {
  readonly keys: ScramKeys;
  readonly serverFinal: string;
}

/** Null when the proof is wrong, that is, when the password is. */
export function finishServerExchange(
  exchange: ServerExchange,
  clientFinal: string,
  channelBinding: Buffer | null,
): Proven | null {
  const match = /^(c=([^,]+),r=([^,]+)(?:,[A-Za-z]=[^,]*)*),p=([^,]+)$/.exec(clientFinal);
  if (!match) throw new ProtocolError('malformed SCRAM message');
  const [, withoutProof = '', binding = '', nonce = '', proofText = ''] = match;
  const { clientFirst, verifier, serverFirst } = exchange;
  const bound = clientFirst.bound && channelBinding ? channelBinding : Buffer.alloc(0);
  if (binding !== Buffer.concat([Buffer.from(clientFirst.gs2Header), bound]).toString('base64')) {
    throw new ProtocolError('SCRAM channel binding check failed');
  }
  const proof = decodeBase64(proofText);
  if (nonce !== exchange.nonce || proof?.length !== keyBytes) {
    throw new ProtocolError('malformed SCRAM message');
  }
  const authMessage = `${clientFirst.bare},${serverFirst},${withoutProof}`;
  const clientKey = xor(proof, hmac(verifier.storedKey, authMessage));
  const serverFinal = `v=${hmac(verifier.serverKey, authMessage).toString('base64')}`;
  if (!timingSafeEqual(sha256(clientKey), verifier.storedKey)) return null;
  return { keys: { clientKey, storedKey: verifier.storedKey, serverKey: verifier.serverKey }, serverFinal };
}

export interface ClientExchange {
  readonly nonce: string;
  readonly bare: string;
  /** For the SASLInitialResponse. */
  readonly first: string;
}

/** The user name is left empty, as libpq does: Postgres takes it from the startup message. */
export function startClientExchange(nonce: string = randomBytes(nonceBytes).toString('base64')): ClientExchange {
  const bare = `n=,r=${nonce}`;
  return { nonce, bare, first: `n,,${bare}` };
}

export interface ClientProof {
  readonly final: string;
  /** What the server must answer if it knows the verifier. */
  readonly expectedServerFinal: string;
}

/** Null when salt or count differ from the verifier's: the password has changed, and our key does not fit it. */
export function proveToServer(
  exchange: ClientExchange,
  serverFirst: string,
  keys: ScramKeys,
  verifier: Pick<ScramVerifier, 'salt' | 'iterations'>,
): ClientProof | null {
  const match = /^r=([^,]+),s=([^,]+),i=(\d{1,10})(?:,.*)?$/s.exec(serverFirst);
  const [, nonce = '', salt = '', iterations = ''] = match ?? [];
  if (!nonce.startsWith(exchange.nonce) || nonce.length === exchange.nonce.length) {
    throw new ProtocolError('malformed SCRAM message from the compute');
  }
  if (salt !== verifier.salt.toString('base64') || Number(iterations) !== verifier.iterations) return null;
  const withoutProof = `c=${Buffer.from('n,,').toString('base64')},r=${nonce}`;
  const authMessage = `${exchange.bare},${serverFirst},${withoutProof}`;
  const proof = xor(keys.clientKey, hmac(keys.storedKey, authMessage));
  return {
    final: `${withoutProof},p=${proof.toString('base64')}`,
    expectedServerFinal: `v=${hmac(keys.serverKey, authMessage).toString('base64')}`,
  };
}

export function isSameText(a: string, b: string): boolean {
  const left = Buffer.from(a);
  const right = Buffer.from(b);
  return left.length === right.length && timingSafeEqual(left, right);
}

function xor(a: Buffer, b: Buffer): Buffer {
  const result = Buffer.allocUnsafe(a.length);
  for (let i = 0; i < a.length; i++) result[i] = (a[i] ?? 0) ^ (b[i] ?? 0);
  return result;
}
