/**
 * The proxies that share one port. Each has a socket of the machine beside it, where the API passes requests for SQL
 * on and where the others pass on cancel requests: a client's request to cancel is a connection of its own, and the
 * system may give it to any of them.
 */
import { Agent, type IncomingMessage, request as openRequest, type ServerResponse } from 'node:http';
import type { BackendKey } from '../protocol/messages.ts';

export interface Siblings {
  /** Which of them this is, from 0 on. */
  readonly number: number;
  readonly sockets: readonly string[];
}

export const cancelPath = '/cancel';
export const metricsPath = '/metrics';
/** Requests at once for one sibling; more wait. How many can wait is bounded where strangers are. */
const passedOnAtOnce = 16;
const keyTextMax = 30;
const agent = new Agent({ keepAlive: true, maxSockets: passedOnAtOnce });

export function ownSocket({ number, sockets }: Siblings): string {
  const path = sockets[number];
  if (path === undefined) throw new Error(`BUG: proxy ${number} has no socket`);
  return path;
}

/** Resolves when the sibling has done what it could, is not there, or the time is over: there is nothing to tell. */
export function passCancelOn(socketPath: string, key: BackendKey, timeoutMs: number): Promise<void> {
  return new Promise((resolve) => {
    const body = `${key.processId} ${key.secret}`;
    const headers = { 'content-length': Buffer.byteLength(body) };
    const request = openRequest({ agent, socketPath, path: cancelPath, method: 'POST', headers });
    request.setTimeout(timeoutMs, () => request.destroy());
    request.once('response', (response) => response.resume());
    // A sibling that is not there has taken its sessions along.
    request.on('error', () => {});
    request.once('close', () => resolve());
    request.end(body);
  });
}

/** Answers a sibling. */
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
