/**
 * One client from accept to close: negotiate, find out which endpoint, authenticate, check access, connect, copy. Owns
 * the client's deadline, and turns whatever goes wrong into one ErrorResponse and one line in the log.
 */
import type { Socket } from 'node:net';
import { isLoopback } from '../lib/config.ts';
import { CatnapError, errorText } from '../lib/errors.ts';
import { plainAddress } from '../lib/ip.ts';
import type { Logger } from '../lib/log.ts';
import { requireAccess } from './client/access.ts';
import type { Attempts } from './client/attempts.ts';
import { authenticate, type Identity, type MockVerifiers } from './client/authenticate.ts';
import { sayFarewell } from './client/farewell.ts';
import { negotiate, type OpenClient } from './client/negotiate.ts';
import { asksForPast, chooseRoute, type HostNames } from './client/route.ts';
import type { WaitingRoom } from './client/waiting-room.ts';
import type { CancelKeys } from './compute/cancel.ts';
import { administratorCommand, describeRefusal, ShuttingDown } from './compute/refusal.ts';
import { connectToCompute, startSession } from './compute/session.ts';
import type { Waker } from './compute/wake.ts';
import type { Activity } from './kit/activity.ts';
import type { ControlPlane } from './kit/control-plane.ts';
import type { ProxyLimits } from './kit/limits.ts';
import type { ProxyMetrics } from './kit/metrics.ts';
import type { Budgets } from './permits/budget.ts';
import { takePlace } from './permits/direct-permit.ts';
import type { EndpointSlots } from './permits/slots.ts';
import { startPooledSession } from './pool/pooled-client.ts';
import type { Pools } from './pool/pools.ts';
import { type MessageStream, PeerGone } from './protocol/message-stream.ts';
import { type BackendKey, errorResponse } from './protocol/messages.ts';
import type { StartupPacket } from './protocol/startup.ts';
import type { Splice } from './sockets/splice.ts';
import type { TlsContext } from './sockets/tls.ts';

/** What all connections of one proxy share. */
export interface ConnectionContext {
  readonly controlPlane: ControlPlane;
  readonly tlsContext: () => TlsContext;
  readonly names: HostNames;
  readonly allowPlaintext: boolean;
  readonly limits: ProxyLimits;
  readonly log: Logger;
  readonly metrics: ProxyMetrics;
  readonly mockVerifier: MockVerifiers;
  readonly attempts: Attempts;
  readonly waitingRoom: WaitingRoom;
  readonly slots: EndpointSlots;
  readonly pooledSlots: EndpointSlots;
  readonly budgets: Budgets;
  readonly pools: Pools;
  readonly waker: Waker;
  readonly cancelKeys: CancelKeys;
  readonly activity: Activity;
}

interface RunningSession {
  readonly closed: Promise<void>;
}

type Terminable = Pick<Splice, 'terminate'>;

/** In the place of what only a login can use. */
const spent = new AbortController();

interface AdmittedClient {
  readonly identity: Identity;
  readonly messages: MessageStream;
  readonly packet: StartupPacket;
}

export class ClientConnection {
  readonly #socket: Socket;
  readonly #context: ConnectionContext;
  readonly #address: string;
  #abort = new AbortController();
  readonly #leaveWaitingRoom: () => void;
  /** Null while nothing we could write would be understood: in a TLS handshake, and once a session runs. */
  #messages: MessageStream | null = null;
  #session: Terminable | null = null;
  /** For the log; known once the client has proved that it may know. */
  #endpointId: string | undefined;

  constructor(socket: Socket, context: ConnectionContext, leaveWaitingRoom: () => void) {
    this.#socket = socket;
    this.#leaveWaitingRoom = leaveWaitingRoom;
    this.#context = context;
    this.#address = plainAddress(socket.remoteAddress ?? '');
  }

  /** Resolves when the connection is over; never rejects. */
  async serve(): Promise<void> {
    try {
      const session = await this.#begin();
      // Nothing of the login is held while the session lasts: ten thousand idle clients would feel it.
      await session?.closed;
    } catch (thrown) {
      await this.#refuse(thrown);
    } finally {
      this.#leaveWaitingRoom();
      this.#socket.destroy();
    }
  }

  /** Tells the client that the proxy is going, wherever the connection stands. */
  shutDown(): void {
    if (this.#session) {
      this.#session.terminate(errorResponse(administratorCommand), this.#context.limits.closeMs);
    } else {
      this.#interrupt(new ShuttingDown());
    }
  }

  destroy(): void {
    this.#socket.destroy();
  }

  /** Up to a running session; null when there is none to be had. */
  async #begin(): Promise<RunningSession | null> {
    const acceptedAt = performance.now();
    const client = await this.#withinAuthenticationTime(() => this.#admit());
    if (client === null) return null;
    this.#leaveWaitingRoom();
    const { identity, packet } = client;
    const { endpointId, pooled } = identity.route;
    this.#endpointId = endpointId;
    const provenAt = performance.now();
    requireAccess(identity.facts, this.#address);
    requirePresent(packet);
    const { activity, log, metrics, slots, pooledSlots } = this.#context;
    activity.note(endpointId);
    const releaseSlot = await (pooled ? pooledSlots : slots).take(endpointId);
    try {
      const session = await (pooled ? this.#pool(client) : this.#connect(client));
      const times = { authenticationMs: provenAt - acceptedAt, connectMs: performance.now() - provenAt };
      metrics.sessionStarted(times);
      log.debug({ endpointId, ...times }, 'a session began');
      this.#messages = null;
      this.#session = session;
      this.#abort = spent;
      return { closed: session.closed.then(releaseSlot) };
    } catch (thrown) {
      releaseSlot();
      throw thrown;
    }
  }

  async #connect({ identity, messages, packet }: AdmittedClient): Promise<RunningSession & Terminable> {
    const { limits, activity, waker, budgets, pools, cancelKeys } = this.#context;
    const { endpointId } = identity.route;
    const { signal } = this.#abort;
    pools.noteProof(identity);
    const releasePlace = await takePlace(budgets.of(endpointId), limits.placeMs, signal);
    try {
      const compute = await connectToCompute({ identity, parameters: packet.parameters, waker, limits, signal });
      if (signal.aborted) compute.socket.destroy();
      signal.throwIfAborted();
      const onClientBytes = () => activity.note(endpointId);
      const { done, terminate } = startSession({
        ...{ messages, compute, cancelKeys, cancelMs: limits.dialMs, onClientBytes },
      });
      return { terminate, closed: done.then(releasePlace) };
    } catch (thrown) {
      releasePlace();
      throw thrown;
    }
  }

  async #pool({ identity, messages, packet }: AdmittedClient): Promise<RunningSession & Terminable> {
    const { limits, activity, pools, cancelKeys } = this.#context;
    const { endpointId } = identity.route;
    let onClosed = () => {};
    const closed = new Promise<void>((resolve) => {
      onClosed = resolve;
    });
    const session = await startPooledSession({
      ...{ identity, parameters: packet.parameters, messages, pools, cancelKeys, onClosed },
      signal: this.#abort.signal,
      cancelMs: limits.dialMs,
      onActivity: () => activity.note(endpointId),
      onRefusal: (thrown, sqlState) => this.#noteRefusal(thrown, sqlState),
    });
    return { closed, terminate: () => session.terminate() };
  }

  /** Null when the connection was only a cancel request, which is then done. */
  async #admit(): Promise<AdmittedClient | null> {
    const { tlsContext, limits } = this.#context;
    const client = await negotiate(this.#socket, {
      tlsContext,
      startupBytes: limits.startupBytes,
      onReader: (messages) => this.#onReader(messages),
    });
    const { messages, packet } = client;
    if (packet.kind === 'cancel') {
      await this.#cancel(packet.key);
      return null;
    }
    return { identity: await this.#authenticate(client, packet), messages, packet };
  }

  async #authenticate(client: OpenClient, packet: StartupPacket): Promise<Identity> {
    const { allowPlaintext, attempts, names, controlPlane, mockVerifier, limits } = this.#context;
    if (!client.secure && !allowPlaintext) {
      throw new CatnapError('unauthenticated', 'connection is insecure (try using `sslmode=require`)');
    }
    const role = packet.parameters.get('user');
    if (!role) throw new CatnapError('unauthenticated', "Parameter 'user' is missing in startup packet.");
    if (attempts.isExhausted(this.#address)) {
      throw new CatnapError('rate_limited', 'Too many connections attempts');
    }
    try {
      return await authenticate({
        messages: client.messages,
        role,
        route: chooseRoute(client.secure?.serverName ?? null, packet.parameters.get('options'), names),
        channelBinding: client.secure?.channelBinding ?? null,
        mayAskPassword: client.secure !== null || isLoopback(this.#address),
        controlPlane,
        mockVerifier,
        passwordIterations: limits.passwordIterations,
      });
    } catch (thrown) {
      if (thrown instanceof CatnapError && thrown.kind === 'password_wrong') {
        attempts.recordFailure(this.#address);
      }
      throw thrown;
    }
  }

  /** Answers by closing, like Postgres, whether the key was right or not. */
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
    const timer = setTimeout(
      () => this.#interrupt(new CatnapError('unauthenticated', 'Authentication timed out')),
      this.#context.limits.authenticationMs,
    );
    // An interruption ends the reading from the client by itself; a control plane that hangs must be left behind.
    const interrupted = new Promise<never>((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    });
    try {
      return await Promise.race([work(), interrupted]);
    } finally {
      clearTimeout(timer);
    }
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
    else this.#socket.destroy();
  }

  /** A pooled session that ends with an error of ours. */
  #noteRefusal(thrown: unknown, sqlState: string): void {
    const facts = { address: this.#address, endpointId: this.#endpointId, sqlState, reason: errorText(thrown) };
    this.#context.log.info(facts, 'a pooled session ended');
    this.#context.metrics.connectionRefused(sqlState);
  }

  async #refuse(thrown: unknown): Promise<void> {
    const { log, metrics } = this.#context;
    // An interruption surfaces as whatever it broke; the reason of the interruption is the truth.
    const reason = this.#abort.signal.aborted ? this.#abort.signal.reason : thrown;
    const { level, sqlState, response } = describeRefusal(reason);
    const facts = { address: this.#address, endpointId: this.#endpointId, sqlState, reason: errorText(reason) };
    log[level](facts, 'connection ended before its session began');
    if (response === null) return;
    metrics.connectionRefused(sqlState);
    const messages = this.#messages;
    if (messages) await sayFarewell(messages.release(), response);
  }
}

/** Point-in-time connections are not built; the options word that asks for one must not be ignored. */
function requirePresent(packet: StartupPacket): void {
  if (!asksForPast(packet.parameters.get('options') ?? '')) return;
  throw new CatnapError('not_supported', 'connections to a point in the past are not supported');
}
