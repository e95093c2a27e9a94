/**
 * Checks whether a server accepts logins without logging in: Catnap's own login is announced, and a server that asks
 * for its password would let it in. A complete login would first build the caches of a database, a third of a wake.
 */

import { connect, type Socket } from 'node:net';
import type { ComputeAddress } from '../../lib/model.ts';
import { adminDatabase, adminRole } from '../interface/own-logins.ts';

const protocolVersion = 3 << 16;
/** First byte of an AuthenticationRequest; a server that starts, stops or is full answers with an error instead. */
const authenticationRequest = 'R'.charCodeAt(0);

const goneMsMax = 2_000;
const unreachable = ['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH'];

const greeting = startupMessage({ user: adminRole, database: adminDatabase });

export function takesLogins(address: ComputeAddress, timeoutMs = 5_000): Promise<boolean> {
  return new Promise((resolve) => {
    const socket: Socket = connect(
      address.kind === 'unix' ? { path: address.path } : { host: address.host, port: address.port },
    );
    const answer = (takes: boolean) => {
      clearTimeout(timer);
      socket.destroy();
      resolve(takes);
    };
    const timer = setTimeout(() => answer(false), timeoutMs);
    socket.on('connect', () => socket.write(greeting));
    socket.on('data', (bytes) => answer(bytes[0] === authenticationRequest));
    socket.on('error', () => answer(false));
    socket.on('close', () => answer(false));
  });
}

/**
 * Whether a server is gone: nothing listens any more. A server that shuts down refuses logins and listens to its very
 * end. Only for TCP, where a socket needs no file; an address that cannot be reached at all counts as gone.
 */
export function isGone({ host, port }: { readonly host: string; readonly port: number }): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    const answer = (gone: boolean) => {
      clearTimeout(timer);
      socket.destroy();
      resolve(gone);
    };
    const timer = setTimeout(() => answer(false), goneMsMax);
    socket.on('connect', () => answer(false));
    socket.on('error', (error: NodeJS.ErrnoException) => answer(unreachable.includes(error.code ?? '')));
  });
}

function startupMessage(parameters: Readonly<Record<string, string>>): Buffer {
  const body = Buffer.from(`${Object.entries(parameters).flat().join('\0')}\0\0`);
  const head = Buffer.alloc(8);
  head.writeInt32BE(head.length + body.length, 0);
  head.writeInt32BE(protocolVersion, 4);
  return Buffer.concat([head, body]);
}
