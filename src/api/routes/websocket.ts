/**
 * WebSockets, at the HTTP port because drivers expect them there. Nothing is read here: a proxy answers the request,
 * and from then on bytes are copied between the client and the proxy, frames and all.
 */
import { type IncomingMessage, request as openRequest } from 'node:http';
import type { Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { CatnapError } from '../../lib/errors.ts';
import type { App } from '../kit/app-type.ts';
import { type Proxies, unreachable } from '../kit/proxies.ts';
import { connected } from '../kit/proxy-request.ts';
import { closeSoon, type Tunnel, Tunnels } from '../kit/tunnels.ts';
import { serveAsRequest } from '../kit/without-upgrade.ts';
import { answerOnSocket } from '../plugins/errors.ts';

const webSocketPath = '/v2';
/** A client that is gone without a word is noticed by this, as on the database port. */
const keepAliveMs = 60_000;

interface Ending {
  /** How long clients may go on once the process is stopping. */
  readonly drainMs: number;
  readonly draining?: AbortSignal | undefined;
}

export function webSocketRoutes(app: App, proxies: Proxies, { drainMs, draining }: Ending = { drainMs: 0 }): void {
  const tunnels = new Tunnels();
  let endsMs = Number.NEGATIVE_INFINITY;
  draining?.addEventListener('abort', () => {
    endsMs = performance.now() + drainMs;
  });
  app.get(webSocketPath, { config: { isPublic: true }, schema: { hide: true } }, () => {
    throw new CatnapError(
      'invalid_request',
      'this path takes WebSockets, and the request has no `Upgrade: websocket` header; a reverse proxy must pass on ' +
        '`Upgrade` and `Connection`',
    );
  });
  app.server.on('upgrade', (request, socket, head) => {
    const client = socket as Socket;
    if (!asksForWebSocket(request)) return serveAsRequest(app.server, request, client, head);
    client.on('error', () => {});
    client.setKeepAlive(true, keepAliveMs);
    passOn(proxies, request, client, head).then(
      (tunnel) => tunnel && tunnels.add(tunnel),
      (thrown) => refuse(client, thrown),
    );
  });
  app.addHook('preClose', async () => {
    await tunnels.allClosed(endsMs - performance.now());
    await tunnels.close();
  });
}

function asksForWebSocket(request: IncomingMessage): boolean {
  const path = pathOf(request).replace(/\/$/, '');
  return path === webSocketPath && request.headers.upgrade?.toLowerCase() === 'websocket';
}

/** Null when the proxy has refused, and its answer has been sent. */
async function passOn(
  proxies: Proxies,
  request: IncomingMessage,
  client: Socket,
  head: Buffer,
): Promise<Tunnel | null> {
  const { headers, method } = request;
  const given = Object.entries({
    host: headers.host,
    'sec-websocket-key': headers['sec-websocket-key'],
    'sec-websocket-version': headers['sec-websocket-version'],
  }).filter((entry): entry is [string, string] => entry[1] !== undefined);
  const address = new URLSearchParams((request.url ?? '').slice(pathOf(request).length)).get('address');
  const path = address === null ? webSocketPath : `${webSocketPath}?${new URLSearchParams({ address })}`;
  const upstream = await proxies.reachOne((socketPath) =>
    connected(
      openRequest({
        socketPath,
        path,
        method: method ?? 'GET',
        // The connection is for this client alone, from its first byte to its last.
        agent: false,
        headers: {
          ...Object.fromEntries(given),
          connection: 'Upgrade',
          upgrade: 'websocket',
          'x-catnap-client-address': client.remoteAddress ?? '',
        },
      }),
    ),
  );
  const leave = () => upstream.destroy();
  client.once('close', leave);
  if (client.destroyed) leave();
  return new Promise((resolve, reject) => {
    upstream.once('upgrade', (reply, proxy, first) => {
      client.off('close', leave);
      client.write(
        'HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n' +
          `sec-websocket-accept: ${reply.headers['sec-websocket-accept']}\r\n\r\n`,
      );
      if (first.length > 0) proxy.unshift(first);
      if (head.length > 0) client.unshift(head);
      resolve({ client, proxy });
    });
    upstream.once('response', (reply) => {
      passBack(reply, client).then(() => resolve(null), reject);
    });
    upstream.on('error', (cause) => reject(unreachable(cause)));
    upstream.end();
  });
}

/** The proxy's refusal. */
async function passBack(reply: IncomingMessage, client: Socket): Promise<void> {
  const message = JSON.parse(await text(reply)).message;
  answerOnSocket(client, reply.statusCode ?? 502, message, { 'sec-websocket-version': '13' });
  closeSoon(client);
}

function refuse(client: Socket, thrown: unknown): void {
  const error = thrown instanceof CatnapError ? thrown : new CatnapError('internal', 'internal error');
  answerOnSocket(client, error.facts.status, error.message, { 'retry-after': String(error.retryAfterSeconds ?? 1) });
  closeSoon(client);
}

function pathOf(request: IncomingMessage): string {
  return request.url?.split('?', 1)[0] ?? '';
}
