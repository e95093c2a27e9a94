/** Connections that the proxy opens itself, by the runtime that it is on. */
import { connect as connectOnNode } from 'node:net';
import type { DialAddress } from '../kit/control-plane.ts';
import type { ByteStream } from '../protocol/byte-stream.ts';
import { bun } from './bun/api.ts';
import { connectOnBun } from './bun/listen.ts';

/** A stream that is not open yet. */
export interface OpeningStream extends ByteStream {
  on: ByteStream['on'] & ((event: 'connect', listener: () => void) => unknown);
  off: ByteStream['off'] & ((event: 'connect', listener: () => void) => unknown);
}

/** 'connect' follows, or 'error'. */
export function connect(address: DialAddress): OpeningStream {
  if (bun !== null) return connectOnBun(bun, address);
  const target = address.kind === 'unix' ? { path: address.path } : { host: address.host, port: address.port };
  return connectOnNode({ ...target, noDelay: true, keepAlive: true, allowHalfOpen: true });
}
