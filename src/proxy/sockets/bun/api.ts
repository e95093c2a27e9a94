/**
 * The part of Bun's own socket API that the proxy uses, as far as it was tried: Bun's published types would declare
 * globals for all of Catnap. Null on Node.
 */

export interface BunHandle {
  /** Whose connection it is; null for one that nobody serves any more. */
  data: BunHandleOwner | null;
  readonly remoteAddress: string;
  readonly alpnProtocol: string | false | null;
  getServername(): string | null | undefined;
  setNoDelay(isOn: boolean): boolean;
  setKeepAlive(isOn: boolean, initialDelayMs: number): boolean;
  /** How many bytes the system has taken, which may be none; negative when the connection is closed. */
  write(bytes: Buffer): number;
  /** Ends the half that sends. */
  shutdown(): void;
  /** Closes both halves; what the system has taken is still sent. */
  close(): void;
  pause(): void;
  resume(): void;
  /** A connection under TLS, and its twin, whose `data` handler is still called with what arrives before decryption. */
  upgradeTLS(options: BunUpgrade): [raw: BunHandle, secured: BunHandle];
}

export interface BunHandleOwner {
  handleOpen(handle: BunHandle): void;
  handleData(handle: BunHandle, chunk: Buffer): void;
  handleDrain(handle: BunHandle): void;
  handleEnd(handle: BunHandle): void;
  handleClose(handle: BunHandle, error: Error | undefined): void;
  handleHandshake(handle: BunHandle, isDone: boolean): void;
}

export interface BunHandlers {
  open?(handle: BunHandle): void;
  data(handle: BunHandle, chunk: Buffer): void;
  drain(handle: BunHandle): void;
  end(handle: BunHandle): void;
  close(handle: BunHandle, error?: Error): void;
  error(handle: BunHandle, error: Error): void;
  handshake?(handle: BunHandle, isDone: boolean): void;
  connectError?(handle: BunHandle, error: Error): void;
}

export interface BunUpgrade {
  readonly isServer: true;
  readonly data: BunHandleOwner;
  /** Bytes of the handshake that were read before. */
  readonly initialData?: Buffer | undefined;
  readonly tls: { readonly secureContext: unknown; readonly ALPNProtocols: Buffer };
  readonly socket: BunHandlers;
}

export interface BunListener {
  readonly fd: number;
  getsockname(name: { address?: string; port?: number }): unknown;
  /** Without an argument, connections go on. */
  stop(closesConnections?: boolean): void;
}

export interface BunApi {
  readonly version: string;
  listen(
    options: ({ readonly fd: number } | { readonly hostname: string; readonly port: number }) & {
      readonly exclusive?: boolean;
      readonly allowHalfOpen: true;
      readonly socket: BunHandlers;
    },
  ): BunListener;
  connect(
    options: ({ readonly unix: string } | { readonly hostname: string; readonly port: number }) & {
      readonly allowHalfOpen: true;
      readonly data: BunHandleOwner;
      readonly socket: BunHandlers;
    },
  ): Promise<BunHandle>;
}

export const bun: BunApi | null = findBun();

function findBun(): BunApi | null {
  const found: BunApi | undefined = Reflect.get(globalThis, 'Bun');
  return found ?? null;
}

/** Bun would hand what a handler throws to `error`, as if the connection had failed. A bug has to end the process. */
function report(bug: unknown): void {
  process.nextTick(() => {
    throw bug;
  });
}

function guarded(handle: (owner: BunHandleOwner, handle: BunHandle) => void) {
  return (socket: BunHandle): void => {
    try {
      if (socket.data != null) handle(socket.data, socket);
    } catch (thrown) {
      report(thrown);
    }
  };
}

function onEnd(handle: BunHandle, error?: Error): void {
  guarded((owner) => owner.handleClose(handle, error))(handle);
}

function onData(handle: BunHandle, chunk: Buffer): void {
  try {
    handle.data?.handleData(handle, chunk);
  } catch (thrown) {
    report(thrown);
  }
}

/** Of every connection: what they call knows by the handle whether it still is the connection's own. */
export const bunHandlers: BunHandlers = {
  open: guarded((owner, handle) => owner.handleOpen(handle)),
  data: onData,
  drain: guarded((owner, handle) => owner.handleDrain(handle)),
  end: guarded((owner, handle) => owner.handleEnd(handle)),
  close: onEnd,
  error: onEnd,
  connectError: onEnd,
};

export const bunTlsHandlers: BunHandlers = {
  data: onData,
  drain: bunHandlers.drain,
  end: bunHandlers.end,
  close: onEnd,
  error: onEnd,
  handshake: (handle, isDone) => guarded((owner) => owner.handleHandshake(handle, isDone))(handle),
};
