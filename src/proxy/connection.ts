/**
 * One client from accept to close: negotiate, find out which endpoint, authenticate, check access, connect, copy. Owns
 * the client's deadline, and turns whatever goes wrong into one ErrorResponse and one line in the log.
 */
import type { Socket } from 'node:net';
import { isLoopback } from '../config.ts';
import { CatnapError, errorText } from '../errors.ts';
import type { Logger } from '../log.ts';
import { plainAddress, requireAccess } from './access.ts';
import type { Activity } from './activity.ts';
import type { Attempts } from './attempts.ts';
import { authenticate, type Identity, type MockVerifiers } from './authenticate.ts';
import type { CancelKeys } from './cancel.ts';
import type { ControlPlane } from './control-plane.ts';
import { sayFarewell } from './farewell.ts';
import type { ProxyLimits } from './limits.ts';
import { type MessageStream, PeerGone } from './message-stream.ts';
import { type BackendKey, errorResponse } from './messages.ts';
import type { ProxyMetrics } from './metrics.ts';
import { negotiate, type OpenClient } from './negotiate.ts';
import type { Budgets } from './pool/budget.ts';
import { takePlace } from './pool/place.ts';
import { startPooledSession } from './pool/pooled-client.ts';
import type { Pools } from './pool/pools.ts';
import { administratorCommand, describeRefusal, ShuttingDown } from './refusal.ts';
import { asksForPast, chooseRoute, type HostNames } from './route.ts';
import { connectToCompute, startSession } from './session.ts';
import type { EndpointSlots } from './slots.ts';
import type { Splice } from './splice.ts';
import type { StartupPacket } from './startup.ts';
import type { TlsContext } from './tls.ts';
import type { WaitingRoom } from './waiting-room.ts';
import type { Waker } from './wake.ts';

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

interface AdmittedClient {
  readonly identity: Identity;
  readonly messages: MessageStream;
  readonly packet: StartupPacket;
}

export class ClientConnection {
  readonly #socket: Socket;
  readonly #context: ConnectionContext;
  readonly #address: string;
  readonly #abort = new AbortController();
  readonly #leaveWaitingRoom: () => void;
  /** Null while nothing we could write would be understood: in a TLS handshake, and once a session runs. */
  #messages: MessageStream | null = null;
  #session: Pick<Splice, 'terminate'> | null = null;
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
      await this.#serve();
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

  async #serve(): Promise<void> {
    const acceptedAt = performance.now();
    const client = await this.#withinAuthenticationTime(() => this.#admit());
    if (client === null) return;
    this.#leaveWaitingRoom();
    const { identity, packet } = client;
    this.#endpointId = identity.route.endpointId;
    const provenAt = performance.now();
    requireAccess(identity.facts, this.#address);
    requirePresent(packet);
    const { activity, log, metrics } = this.#context;
    const onConnected = () => {
      const times = { authenticationMs: provenAt - acceptedAt, connectMs: performance.now() - provenAt };
      metrics.sessionStarted(times);
      log.debug({ endpointId: this.#endpointId, ...times }, 'a session began');
    };
    activity.note(identity.route.endpointId);
    if (identity.route.pooled) await this.#servePooled(client, onConnected);
    else await this.#serveDirectly(client, onConnected);
  }

  async #serveDirectly({ identity, messages, packet }: AdmittedClient, onConnected: () => void): Promise<void> {
    const { limits, slots, activity, waker, budgets, cancelKeys } = this.#context;
    const { endpointId } = identity.route;
    const { signal } = this.#abort;
    const releaseSlot = slots.take(endpointId);
    let releasePlace = () => {};
    try {
      releasePlace = await takePlace(budgets.of(endpointId), limits.placeMs, signal);
      const compute = await connectToCompute({ identity, parameters: packet.parameters, waker, limits, signal });
      if (signal.aborted) compute.socket.destroy();
      signal.throwIfAborted();
      onConnected();
      this.#messages = null;
      const session = startSession({
        messages,
        compute,
        cancelKeys,
        cancelMs: limits.dialMs,
        onClientBytes: () => activity.note(endpointId),
      });
      this.#session = session;
      await session.done;
    } finally {
      releaseSlot();
      releasePlace();
    }
  }

  async #servePooled({ identity, messages, packet }: AdmittedClient, onConnected: () => void): Promise<void> {
    const { limits, pooledSlots, activity, pools, cancelKeys } = this.#context;
    const { endpointId } = identity.route;
    const releaseSlot = pooledSlots.take(endpointId);
    try {
      await new Promise<void>((resolve, reject) => {
        const { signal } = this.#abort;
        startPooledSession({
          ...{ identity, parameters: packet.parameters, messages, pools, cancelKeys, signal },
          cancelMs: limits.dialMs,
          onActivity: () => activity.note(endpointId),
          onRefusal: (thrown, sqlState) => this.#noteRefusal(thrown, sqlState),
          onClosed: resolve,
        }).then((session) => {
          onConnected();
          this.#messages = null;
          this.#session = session;
        }, reject);
      });
    } finally {
      releaseSlot();
    }
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
    messages?.onGone(() => this.#abort.abort(new PeerGone()));
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
