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
const refused = 'ECONNREFUSED';
const unreachable = [refused, 'EHOSTUNREACH', 'ENETUNREACH'];

interface TcpAddress {
  readonly host: string;
  readonly port: number;
}

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
export async function isGone(address: TcpAddress): Promise<boolean> {
  return unreachable.includes((await connectError(address)) ?? '');
}

/** Whether the machine at the address says that nothing listens there. An address that is not reached says nothing. */
export async function refuses(address: TcpAddress): Promise<boolean> {
  return (await connectError(address)) === refused;
}

/** The code of the error with which a connection fails; null for one that succeeds, or takes too long. */
function connectError({ host, port }: TcpAddress): Promise<string | null> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    const answer = (code: string | null) => {
      clearTimeout(timer);
      socket.destroy();
      resolve(code);
    };
    const timer = setTimeout(() => answer(null), goneMsMax);
    socket.on('connect', () => answer(null));
    socket.on('error', (error: NodeJS.ErrnoException) => answer(error.code ?? null));
  });
}

function startupMessage(parameters: Readonly<Record<string, string>>): Buffer {
  const body = Buffer.from(`${Object.entries(parameters).flat().join('\0')}\0\0`);
  const head = Buffer.alloc(8);
  head.writeInt32BE(head.length + body.length, 0);
  head.writeInt32BE(protocolVersion, 4);
  return Buffer.concat([head, body]);
}
