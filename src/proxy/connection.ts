/**
 * One client from accept to close: negotiate, find its endpoint, authenticate, check access, connect, copy. Owns the
 * client's deadline, and turns whatever goes wrong into one ErrorResponse and one line in the log.
 */
import { CatnapError, errorText } from '../lib/errors.ts';
import { requireAccess, requirePooler } from './client/access.ts';
import type { WatchedSession } from './client/access-watch.ts';
import { sayFarewell } from './client/farewell.ts';
import { type LoggedIn, logIn } from './client/log-in.ts';
import { negotiate } from './client/negotiate.ts';
import { enterPast } from './client/past.ts';
import { startDirectSession } from './compute/direct-session.ts';
import type { Caller, HeadStart } from './compute/head-start.ts';
import { administratorCommand, describeRefusal, ShuttingDown } from './compute/refusal.ts';
import { asksForReplication } from './compute/replication.ts';
import { forwardedParameters, withClaims } from './compute/session.ts';
import type { ConnectionContext } from './connection-context.ts';
import type { Sent } from './kit/transfers.ts';
import { startPooledSession } from './pool/start-session.ts';
import type { ByteStream } from './protocol/byte-stream.ts';
import { type MessageStream, PeerGone } from './protocol/message-stream.ts';
import { type BackendKey, type ErrorReport, errorResponse } from './protocol/messages.ts';
import type { Splice } from './sockets/splice.ts';
import type { OpenWebSocket } from './websocket/open.ts';

/** A client that has just been accepted. */
export interface ArrivingClient {
  readonly stream: ByteStream;
  readonly address: string;
  /** Null for a client of the database port. */
  readonly webSocket: Pick<OpenWebSocket, 'hostnames'> | null;
}

interface RunningSession {
  readonly closed: Promise<void>;
}

type Terminable = Pick<Splice, 'drain' | 'terminate'>;

/** Replaces the controller of a login that is over, so that nothing of the login stays in memory. */
const spent = new AbortController();

interface AdmittedClient extends LoggedIn {
  readonly messages: MessageStream;
}

export class ClientConnection implements WatchedSession {
  readonly #stream: ByteStream;
  readonly #context: ConnectionContext;
  readonly address: string;
  readonly #webSocket: ArrivingClient['webSocket'];
  #abort = new AbortController();
  readonly #leaveUnauthenticated: () => void;
  #unwatch = () => {};
  /** Null while the client could not read a message of ours: during a TLS handshake, and once a session runs. */
  #messages: MessageStream | null = null;
  #session: Terminable | null = null;
  #sessionSinceMs = Number.POSITIVE_INFINITY;
  #isDraining = false;
  #deadline: NodeJS.Timeout | undefined;
  #headStart: HeadStart | null = null;
  /** For the log; set once the client is authenticated. */
  #endpointId: string | undefined;
  /** Where the client wanted to go: for a look into the past not the compute that serves it. */
  accessName = '';

  constructor(client: ArrivingClient, context: ConnectionContext, leaveUnauthenticated: () => void) {
    this.#stream = client.stream;
    this.address = client.address;
    this.#webSocket = client.webSocket;
    this.#leaveUnauthenticated = leaveUnauthenticated;
    this.#context = context;
  }

  /** Resolves when the connection is over; never rejects. */
  async serve(): Promise<void> {
    try {
      const session = await this.#begin();
      // The login must not stay in memory while the session lasts: with ten thousand idle clients it would add up.
      await session?.closed;
    } catch (thrown) {
      await this.#refuse(thrown);
    } finally {
      this.#headStart?.discard();
      this.#unwatch();
      this.#leaveUnauthenticated();
      this.#stream.destroy();
    }
  }

  /**
   * Ends the session when it is outside of a transaction. A client that has just logged in, or still does, connected
   * before the proxy began to close, and gets the time to send its first request.
   */
  drain(): void {
    this.#isDraining = true;
    const session = this.#session;
    if (session === null) return;
    const { firstRequestMs } = this.#context.limits;
    const waitMs = this.#sessionSinceMs + firstRequestMs - performance.now();
    const end = () => session.drain(errorResponse(administratorCommand));
    if (waitMs <= 0) end();
    else setTimeout(end, waitMs).unref();
  }

  /** Tells the client that the proxy is closing, whatever state the connection is in. */
  shutDown(): void {
    if (this.#session) {
      this.#session.terminate(errorResponse(administratorCommand), this.#context.limits.closeMs);
    } else {
      this.#interrupt(new ShuttingDown());
    }
  }

  endAccess(refusal: CatnapError): void {
    if (this.#session === null) {
      this.#interrupt(refusal);
      return;
    }
    const { sqlState } = refusal.facts;
    this.#noteRefusal(refusal, sqlState);
    this.#session.terminate(errorResponse({ sqlState, message: refusal.message }), this.#context.limits.closeMs);
  }

  destroy(): void {
    this.#stream.destroy();
  }

  /** Resolves with the running session; null when the connection was only a cancel request. */
  async #begin(): Promise<RunningSession | null> {
    const acceptedAt = performance.now();
    const { access } = this.#context;
    const changesBefore = access.changes;
    const client = await this.#withinAuthenticationTime(() => this.#admit());
    if (client === null) return null;
    this.#leaveUnauthenticated();
    const { facts, route } = client.identity;
    this.#endpointId = route.endpointId;
    this.accessName = route.endpointId;
    const provenAt = performance.now();
    requireAccess(facts, this.address);
    this.#unwatch = access.watch(this);
    // The rules may have changed while the client took its time to prove its password.
    if (access.changes !== changesBefore) await access.check();
    this.#abort.signal.throwIfAborted();
    requirePooler(facts, route);
    const options = client.parameters.get('options');
    const identity = await enterPast(client.identity, options, this.#context, this.#abort.signal);
    const { endpointId, pooled } = identity.route;
    const { activity, log, metrics, directClients, pooledClients, roleSessions, transfers } = this.#context;
    activity.note(endpointId);
    const releasePermit = await (pooled ? pooledClients : directClients).take(endpointId);
    const sent = transfers.open(facts.endpointId ?? route.endpointId);
    const releaseClient = () => {
      releasePermit();
      sent.close();
    };
    try {
      const session = await (pooled
        ? this.#startPooled({ ...client, identity }, sent)
        : this.#startDirect({ ...client, identity }, sent));
      const times = { authenticationMs: provenAt - acceptedAt, connectMs: performance.now() - provenAt };
      metrics.sessionStarted(times);
      log.debug({ endpointId, ...times }, 'a session began');
      this.#messages = null;
      this.#headStart = null;
      this.#session = session;
      this.#sessionSinceMs = performance.now();
      if (this.#isDraining) this.drain();
      this.#abort = spent;
      const end = () => this.shutDown();
      const { role } = client.identity;
      const leave = roleSessions.enter(facts.endpointId ?? route.endpointId, {
        role,
        resetAt: facts.resetAt ?? null,
        end,
      });
      return { closed: session.closed.then(leave).then(releaseClient) };
    } catch (thrown) {
      releaseClient();
      throw thrown;
    }
  }

  #startDirect(client: AdmittedClient, sent: Sent): Promise<RunningSession & Terminable> {
    const { signal } = this.#abort;
    const onRefusal = (report: ErrorReport, terminate: Terminable['terminate']) =>
      this.#endReplication(report, terminate);
    const { address } = this;
    const headStart = this.#headStart;
    this.#context.pools.noteProof(client.identity);
    return startDirectSession({ ...client, address, headStart, sent, signal, onRefusal }, this.#context);
  }

  #endReplication(report: ErrorReport, terminate: Terminable['terminate']): void {
    this.#noteRefusal(new Error(report.message), report.sqlState);
    terminate(errorResponse(report), this.#context.limits.closeMs);
  }

  async #startPooled(client: AdmittedClient, sent: Sent): Promise<RunningSession & Terminable> {
    const { identity, messages, parameters } = client;
    const { limits, activity, pools, cancelKeys } = this.#context;
    const { endpointId } = identity.route;
    let onClosed = () => {};
    const closed = new Promise<void>((resolve) => {
      onClosed = resolve;
    });
    const session = await startPooledSession({
      identity,
      parameters,
      messages,
      pools,
      cancelKeys,
      onClosed,
      signal: this.#abort.signal,
      cancelMs: limits.dialMs,
      onActivity: () => activity.note(endpointId),
      sent,
      onRefusal: (thrown, sqlState) => this.#noteRefusal(thrown, sqlState),
    });
    return {
      closed,
      drain: (farewell) => session.drain(farewell),
      terminate: (farewell) => session.terminate(farewell),
    };
  }

  /** Null when the connection was only a cancel request, which is then done. */
  async #admit(): Promise<AdmittedClient | null> {
    const { tlsContext, limits } = this.#context;
    const client = await negotiate(this.#stream, {
      tlsContext,
      startupBytes: limits.startupBytes,
      mayPipelineTls: this.#webSocket !== null,
      onReader: (messages) => this.#onReader(messages),
    });
    const { messages, packet } = client;
    if (packet.kind === 'cancel') {
      await this.#cancel(packet.key);
      return null;
    }
    const loggedIn = await logIn(client, packet, {
      ...this.#context,
      passwordIterations: limits.passwordIterations,
      address: this.address,
      webSocket: this.#webSocket,
      signal: this.#abort.signal,
      onRoute: (route, role) => this.#beginEarly(packet.parameters, { address: this.address, route, role }),
      onWait: (ms) => this.#restartDeadline(ms + limits.authenticationMs),
    });
    return { messages, ...loggedIn };
  }

  #beginEarly(parameters: ReadonlyMap<string, string>, caller: Caller): void {
    if (caller.route.pooled || asksForReplication(parameters)) return;
    const { headStarts, budgets } = this.#context;
    const forwarded = withClaims(forwardedParameters(parameters), '');
    this.#headStart = headStarts.begin(caller, forwarded, budgets.of(caller.route.endpointId));
  }

  /** Like Postgres, answers by closing the connection, whether the key was right or not. */
  async #cancel(key: BackendKey): Promise<void> {
    const { cancelKeys, log } = this.#context;
    try {
      await cancelKeys.find(key)?.cancel();
    } catch (thrown) {
      log.warn({ reason: errorText(thrown) }, 'a cancel request did not reach its compute');
    }
  }

  async #withinAuthenticationTime<T>(work: () => Promise<T>): Promise<T> {
    const { signal } = this.#abort;
    this.#restartDeadline(this.#context.limits.authenticationMs);
    // An interruption ends a read from the client by itself, but not a call to a control plane that hangs.
    const interrupted = new Promise<never>((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    });
    try {
      return await Promise.race([work(), interrupted]);
    } finally {
      clearTimeout(this.#deadline);
    }
  }

  #restartDeadline(ms: number): void {
    clearTimeout(this.#deadline);
    this.#deadline = setTimeout(
      () => this.#interrupt(new CatnapError('unauthenticated', 'Authentication timed out')),
      ms,
    );
  }

  #onReader(messages: MessageStream | null): void {
    this.#messages = messages;
    if (this.#abort.signal.aborted) messages?.interrupt(this.#abort.signal.reason);
    const abort = this.#abort;
    messages?.onGone(() => abort.abort(new PeerGone()));
  }

  #interrupt(reason: Error): void {
    this.#abort.abort(reason);
    if (this.#messages) this.#messages.interrupt(reason);
    else this.#stream.destroy();
  }

  /** A session has ended with an error of the proxy's own. */
  #noteRefusal(thrown: unknown, sqlState: string): void {
    const facts = { address: this.address, endpointId: this.#endpointId, sqlState, reason: errorText(thrown) };
    this.#context.log.info(facts, 'the proxy ended a session');
    this.#context.metrics.connectionRefused(sqlState);
  }

  async #refuse(thrown: unknown): Promise<void> {
    const { log, metrics } = this.#context;
    // After an interruption `thrown` is whatever it broke; the reason of the interruption is the one to report.
    const reason = this.#abort.signal.aborted ? this.#abort.signal.reason : thrown;
    const { level, sqlState, response } = describeRefusal(reason);
    const facts = { address: this.address, endpointId: this.#endpointId, sqlState, reason: errorText(reason) };
    log[level](facts, 'connection ended before its session began');
    if (!(reason instanceof PeerGone)) metrics.connectionRefused(sqlState);
    const messages = this.#messages;
    if (messages && response !== null) await sayFarewell(messages.release(), response);
  }
}
