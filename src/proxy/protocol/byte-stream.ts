/**
 * What the proxy asks of a connection, whichever runtime it is on: a Duplex of Node is one, and so is `BunSocket`. Both
 * halves are independent: the end of what arrives does not end what is sent.
 */

export interface ByteStream {
  readonly destroyed: boolean;
  /** 'close' has been emitted. */
  readonly closed: boolean;
  /** More can be written. */
  readonly writable: boolean;
  /** 'drain' will follow. */
  readonly writableNeedDrain: boolean;
  /** Bytes that were written and not passed on. */
  readonly writableLength: number;
  readonly readableEnded: boolean;
  on(event: 'data', listener: (chunk: Buffer) => void): unknown;
  on(event: 'error', listener: (error: Error) => void): unknown;
  on(event: 'end' | 'finish' | 'drain' | 'close', listener: () => void): unknown;
  once(event: 'error', listener: (error: Error) => void): unknown;
  once(event: 'end' | 'finish' | 'drain' | 'close', listener: () => void): unknown;
  off(event: 'data', listener: (chunk: Buffer) => void): unknown;
  off(event: 'error', listener: (error: Error) => void): unknown;
  off(event: 'end' | 'finish' | 'drain' | 'close', listener: () => void): unknown;
  write(bytes: Buffer): boolean;
  end(): unknown;
  end(bytes: Buffer): unknown;
  destroy(error?: Error): unknown;
  pause(): unknown;
  resume(): unknown;
  isPaused(): boolean;
  /** Puts bytes back in front of what has not been delivered. */
  unshift(bytes: Buffer): unknown;
}

export interface ListenOptions {
  readonly bind: string;
  /** 0 takes any free port. */
  readonly port: number;
  /** A socket that is bound to the port already. */
  readonly portFd: number | null | undefined;
  readonly keepAliveMs: number;
  /** Connections beyond it are dropped. */
  readonly connectionsMax: number;
  readonly onConnection: (stream: ByteStream, address: string) => void;
  readonly onError: (error: Error) => void;
}

export interface Listener {
  readonly port: number;
  /** Stops accepting; resolves when all connections are closed. */
  close(): Promise<void>;
}
