/**
 * The proxies that share one port. Each also listens on a unix socket, to which the API passes requests for SQL over
 * HTTP and the other proxies pass cancel requests: a client sends a cancel request over a new connection, and the
 * system may give that to any of the proxies.
 */
import { Agent, type IncomingMessage, request as openRequest, type ServerResponse } from 'node:http';
import type { BackendKey } from '../protocol/messages.ts';

export interface Siblings {
  /** Which of them this is, counted from 0. */
  readonly number: number;
  readonly sockets: readonly string[];
}

export const cancelPath = '/cancel';
export const metricsPath = '/metrics';
/** Requests at once to one sibling; more wait, at most as many as there may be unauthenticated connections. */
const passedOnAtOnce = 16;
const keyTextMax = 30;
const agent = new Agent({ keepAlive: true, maxSockets: passedOnAtOnce });

export function ownSocket({ number, sockets }: Siblings): string {
  const path = sockets[number];
  if (path === undefined) throw new Error(`BUG: proxy ${number} has no socket`);
  return path;
}

/** Resolves when the sibling has answered, cannot be reached, or the time is over: a cancel request has no result. */
export function passCancelOn(socketPath: string, key: BackendKey, timeoutMs: number): Promise<void> {
  return new Promise((resolve) => {
    const body = `${key.processId} ${key.secret}`;
    const headers = { 'content-length': Buffer.byteLength(body) };
    const request = openRequest({ agent, socketPath, path: cancelPath, method: 'POST', headers });
    request.setTimeout(timeoutMs, () => request.destroy());
    request.once('response', (response) => response.resume());
    // The sessions of a sibling that is gone are gone with it.
    request.on('error', () => {});
    request.once('close', () => resolve());
    request.end(body);
  });
}

/** Handles a cancel request that a sibling has passed on. */
export async function serveCancel(
  request: IncomingMessage,
  response: ServerResponse,
  cancel: (key: BackendKey) => Promise<void>,
): Promise<void> {
  request.setEncoding('latin1');
  let text = '';
  for await (const chunk of request) {
    text += chunk;
    if (text.length > keyTextMax) return void response.destroy();
  }
  const [processId, secret] = text.split(' ').map(Number);
  if (Number.isInteger(processId) && Number.isInteger(secret)) {
    await cancel({ processId: processId ?? 0, secret: secret ?? 0 });
  }
  response.writeHead(204).end();
}
