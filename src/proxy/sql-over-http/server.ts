/**
 * SQL over HTTP: one request is one statement, one transaction, or a file with the rows of a statement. Listens on the
 * proxy's unix socket, to which the API passes requests, those for a WebSocket too, and other proxies pass cancel
 * requests. It uses what the database port uses: authentication before anything else, the same limits, the same wake,
 * the same pools.
 */
import { once } from 'node:events';
import { chmod, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { drainOf } from '../../lib/drain.ts';
import { CatnapError, errorText } from '../../lib/errors.ts';
import { plainAddress } from '../../lib/ip.ts';
import type { Logger } from '../../lib/log.ts';
import { requireAccess, requirePooler } from '../client/access.ts';
import type { AccessWatch } from '../client/access-watch.ts';
import type { Attempts } from '../client/attempts.ts';
import type { MockVerifiers } from '../client/authenticate.ts';
import { KnownPasswords } from '../client/known-passwords.ts';
import { enterPast } from '../client/past.ts';
import type { HostnameParts } from '../client/route.ts';
import type { UnauthenticatedConnections } from '../client/unauthenticated.ts';
import type { CancelKeys } from '../compute/cancel.ts';
import { cancelPath, metricsPath, serveCancel } from '../compute/siblings.ts';
import type { Activity } from '../kit/activity.ts';
import type { ControlPlane } from '../kit/control-plane.ts';
import type { ProxyLimits } from '../kit/limits.ts';
import type { ProxyMetrics } from '../kit/metrics.ts';
import type { Transfers } from '../kit/transfers.ts';
import type { ClientPermits } from '../permits/client-permits.ts';
import type { Lease } from '../pool/lease.ts';
import type { Pools } from '../pool/pools.ts';
import { PeerGone } from '../protocol/message-stream.ts';
import { type OpenWebSocket, openWebSocket } from '../websocket/open.ts';
import { authenticate, type KnownCaller } from './authenticate.ts';
import { executeBody } from './batch.ts';
import { resetSession, type ServerSession, StatementFailed } from './execute.ts';
import { type ExportFormat, exportRows, RowFile, readExportFormat, singleStatement } from './export.ts';
import { createHeldBytes, type HeldBytes } from './held-bytes.ts';
import {
  describeFailure,
  echoBatchHeaders,
  RequestTooLarge,
  sendJson,
  sendPreflight,
  setCommonHeaders,
} from './reply.ts';
import { readBody, readOptions, readTarget, type SqlBody, type SqlTarget } from './request.ts';

/** The client's address, set by the API; only Catnap's own processes can reach this socket. */
export const clientAddressHeader = 'x-catnap-client-address';

/**
 * Only Catnap's own processes connect, and they keep their connections; one that we close could just be in use. Never
 * 0: Node would then let the time limit of a reply run on for the next request of the same connection.
 */
const keepAliveMs = 3_600_000;

export interface SqlOverHttp {
  close(): Promise<void>;
}

/** Takes over a client that came with a request for a WebSocket. */
export type OnWebSocket = (webSocket: OpenWebSocket, clientAddress: string) => void;

/** What it shares with the connections of the database port. */
export interface SqlOverHttpParts {
  readonly controlPlane: ControlPlane;
  readonly names: HostnameParts;
  readonly limits: ProxyLimits;
  readonly log: Logger;
  readonly metrics: ProxyMetrics;
  readonly mockVerifier: MockVerifiers;
  readonly attempts: Attempts;
  readonly unauthenticated: UnauthenticatedConnections;
  readonly access: AccessWatch;
  readonly pooledClients: ClientPermits;
  readonly pools: Pools;
  readonly cancelKeys: CancelKeys;
  readonly activity: Activity;
  readonly transfers: Transfers;
}

export async function startSqlOverHttp(
  path: string,
  context: SqlOverHttpParts,
  onWebSocket: OnWebSocket,
): Promise<SqlOverHttp> {
  const closing = new AbortController();
  const { httpHeldBytes, httpHeldBytesPerEndpoint } = context.limits;
  const sqlContext: SqlContext = {
    ...context,
    held: createHeldBytes({ total: httpHeldBytes, perEndpoint: httpHeldBytesPerEndpoint }),
    knownPasswords: new KnownPasswords(context.controlPlane, context.limits.httpPasswordMs),
  };
  const server = createServer((request, response) => {
    if (request.url === cancelPath) return void cancelFor(request, response, context);
    if (request.url === metricsPath) return void context.metrics.scrape().then((numbers) => response.end(numbers));
    void serve(request, response, sqlContext, closing.signal);
  });
  server.on('upgrade', (request, socket, head) => {
    const webSocket = openWebSocket(request, socket, head, context.limits.webSocketPingMs);
    if (webSocket !== null) onWebSocket(webSocket, addressOf(request));
  });
  const drain = drainOf(server);
  server.keepAliveTimeout = keepAliveMs;
  // The socket of an earlier process that was killed.
  await rm(path, { force: true });
  server.listen(path);
  await once(server, 'listening');
  await chmod(path, 0o600);
  return {
    async close() {
      await drain.finish(context.limits.drainMs);
      closing.abort(new CatnapError('unavailable', 'the proxy is closing; safe to repeat'));
      const killer = setTimeout(() => server.closeAllConnections(), context.limits.closeMs);
      await drain.close();
      clearTimeout(killer);
    },
  };
}

/** For a sibling that has passed a cancel request on. */
async function cancelFor(request: IncomingMessage, response: ServerResponse, context: SqlOverHttpParts): Promise<void> {
  const { cancelKeys, log } = context;
  try {
    await serveCancel(request, response, async (key) => cancelKeys.find(key)?.cancel());
  } catch (thrown) {
    log.warn({ reason: errorText(thrown) }, 'a cancel request did not reach its compute');
    response.destroy();
  }
}

interface SqlContext extends SqlOverHttpParts {
  readonly held: HeldBytes;
  readonly knownPasswords: KnownPasswords;
}

async function serve(
  request: IncomingMessage,
  response: ServerResponse,
  context: SqlContext,
  closing: AbortSignal,
): Promise<void> {
  setCommonHeaders(response);
  const abort = new AbortController();
  const onClosing = () => abort.abort(closing.reason);
  closing.addEventListener('abort', onClosing, { once: true });
  response.once('close', () => {
    if (!response.writableFinished) abort.abort(new PeerGone());
  });
  try {
    if (request.method === 'OPTIONS') return sendPreflight(response);
    const format = readExportFormat(request.url ?? '');
    const exchange = { request, response, abort };
    if (format === null) await sendResults(exchange, context);
    else await sendFile(format, exchange, context);
  } catch (thrown) {
    const reason = abort.signal.aborted ? abort.signal.reason : thrown;
    const { status, body, sqlState, isOurs } = describeFailure(reason);
    const facts = { address: addressOf(request), sqlState, reason: errorText(reason) };
    if (reason instanceof PeerGone) context.log.debug(facts, 'a caller left before its answer');
    else if (!(reason instanceof StatementFailed)) {
      context.metrics.connectionRefused(sqlState);
      context.log[isOurs ? 'error' : 'info'](facts, 'a request for SQL was refused');
    }
    // A file that breaks off must not look like a whole one.
    if (response.headersSent) response.destroy();
    else sendJson(response, status, body);
  } finally {
    closing.removeEventListener('abort', onClosing);
    // If the reply came before the end of the request, the rest of the request is discarded.
    request.resume();
  }
}

async function sendResults(exchange: Exchange, context: SqlContext): Promise<void> {
  const { request, response } = exchange;
  const { limits, transfers } = context;
  const options = readOptions(request.headers);
  const { endpointId, text, isBatch } = await answer(exchange, context, async ({ server, body, hold, endpointId }) => {
    const replyBytes = { max: limits.httpResponseBytes, used: 0, hold };
    const text = await executeBody(server, body, options, replyBytes);
    return { endpointId, text, isBatch: body.kind === 'batch' };
  });
  if (isBatch) echoBatchHeaders(response, options.batch);
  transfers.add(endpointId, sendJson(response, 200, text));
  limitFetching(response, limits.httpFetchMs);
}

async function sendFile(format: ExportFormat, exchange: Exchange, context: SqlContext): Promise<void> {
  const { limits, transfers } = context;
  const { response } = exchange;
  await answer(exchange, context, ({ server, body, endpointId }) => {
    const onSent = (bytes: number) => transfers.add(endpointId, bytes);
    const file = new RowFile({ response, format, fetchMs: limits.httpFetchMs, onSent });
    return exportRows(server, singleStatement(body), file, limits.httpResponseBytes);
  });
}

/**
 * A caller that does not read its reply must not make us keep it. On Bun the time runs on while a caller reads, so what
 * it has read since is looked at.
 */
function limitFetching(response: ServerResponse, ms: number): void {
  let unread = response.writableLength;
  // The system has taken a small reply at once.
  if (unread === 0) return;
  // The limit is the socket's, and Node leaves it in force if the next request is there before the end of this reply.
  const { socket } = response;
  response.once('finish', () => socket?.setTimeout(0));
  response.setTimeout(ms, () => {
    const left = response.writableLength;
    if (left >= unread) return void response.destroy();
    unread = left;
    response.setTimeout(ms);
  });
}

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Ends the request. */
  readonly abort: AbortController;
}

/** What an authenticated caller asks for, and the session to answer it with. */
interface Asked {
  readonly server: ServerSession;
  readonly body: SqlBody;
  readonly hold: (bytes: number) => void;
  /** Whose traffic it is. */
  readonly endpointId: string;
}

/** The headers alone decide about authentication and access; the body of a refused request is never kept. */
async function answer<T>(
  { request, response, abort }: Exchange,
  context: SqlContext,
  work: (asked: Asked) => Promise<T>,
): Promise<T> {
  const { limits, pooledClients, activity, held, access } = context;
  const { signal } = abort;
  const changesBefore = access.changes;
  const target = readTarget(request.url ?? '', request.headers, context.names);
  const address = addressOf(request);
  const { identity: proven, claims } = await authenticate(target, address, context);
  const { facts } = proven;
  requireAccess(facts, address);
  requirePooler(facts, proven.route);
  const accessName = proven.route.endpointId;
  const unwatch = access.watch({ accessName, address, endAccess: (refusal) => abort.abort(refusal) });
  response.once('close', unwatch);
  if (access.changes !== changesBefore) await access.check();
  signal.throwIfAborted();
  const identity = await enterPast(proven, target.parameters.get('options'), context, signal);
  const { endpointId } = identity.route;
  const releaseClient = await pooledClients.take(endpointId);
  const share = held.begin(endpointId);
  response.once('close', share.end);
  if (response.closed) share.end();
  try {
    const body = readBody(await readText(request, limits.httpRequestBytes, share.hold));
    activity.note(endpointId);
    const ofTraffic = facts.endpointId ?? proven.route.endpointId;
    return await withSession({ identity, claims }, target, context, signal, (server) =>
      work({ server, body, hold: share.hold, endpointId: ofTraffic }),
    );
  } finally {
    activity.note(endpointId);
    releaseClient();
  }
}

/** When the caller leaves, its query is cancelled: releasing a lease in the middle of a query cancels the query. */
async function withSession<T>(
  { identity, claims }: KnownCaller,
  target: SqlTarget,
  { pools, log }: SqlOverHttpParts,
  signal: AbortSignal,
  work: (server: ServerSession) => Promise<T>,
): Promise<T> {
  const parameters = new Map([['user', target.role], ['database', target.database], ...target.parameters]);
  const lease = await pools.lease({ identity, parameters, claims, signal });
  const leave = () => lease.release();
  signal.addEventListener('abort', leave, { once: true });
  try {
    signal.throwIfAborted();
    return await work(lease);
  } finally {
    signal.removeEventListener('abort', leave);
    void giveBack(lease).catch((thrown) => log.debug({ reason: errorText(thrown) }, 'a session was not given back'));
  }
}

/** The reply does not wait for this. A session that is in a transaction is closed instead. */
async function giveBack(lease: Lease): Promise<void> {
  try {
    if (lease.isIdle && !lease.isReset) await resetSession(lease);
  } finally {
    lease.release();
  }
}

/** Not by iteration: leaving the loop early would destroy the request, and with it the socket for the reply. */
function readText(request: IncomingMessage, max: number, hold: (bytes: number) => void): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    let isRefused = false;
    const refuse = (reason: unknown) => {
      isRefused = true;
      chunks.length = 0;
      reject(reason);
    };
    request.on('data', (chunk: Buffer) => {
      if (isRefused) return;
      length += chunk.length;
      if (length > max) return refuse(new RequestTooLarge(max));
      try {
        hold(chunk.length);
        chunks.push(chunk);
      } catch (thrown) {
        refuse(thrown);
      }
    });
    request.once('end', () => resolve(Buffer.concat(chunks).toString('utf8')));
    request.once('close', () => {
      if (!request.readableEnded) reject(new PeerGone());
    });
    if (request.destroyed) reject(new PeerGone());
  });
}

function addressOf(request: IncomingMessage): string {
  const given = request.headers[clientAddressHeader];
  return plainAddress(typeof given === 'string' ? given : '');
}
