/**
 * A session of Postgres's wire protocol, logged in with SCRAM-SHA-256, whose socket stays open for the caller to use.
 * What the server sent about itself is kept, for the caller to repeat.
 */
import { randomBytes } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { deriveKeys, hmac, sha256 } from '../../lib/scram-verifier.ts';
import type { Login } from '../server/admin-session.ts';

export interface WireSession {
  readonly socket: Socket;
  /** From "authenticated" to "ready", as the server sent it. */
  readonly greeting: Buffer;
}

const loginMsMax = 10_000;

export async function openWireSession(path: string, login: Login, options: string): Promise<WireSession> {
  const socket = connect({ path });
  socket.setTimeout(loginMsMax, () => socket.destroy(new Error('the server does not answer')));
  try {
    const greeting = await logIn(socket, login, options);
    socket.setTimeout(0);
    return { socket, greeting };
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

async function logIn(socket: Socket, login: Login, options: string): Promise<Buffer> {
  const messages = readMessages(socket);
  const next = async () => {
    const { value } = await messages.next();
    if (value === undefined) throw new Error('the server closed the connection');
    if (value[0] === code('E')) throw new Error(`the server refused the login: ${errorText(value)}`);
    return value;
  };
  socket.write(startup({ user: login.username, database: login.database, application_name: 'catnap', options }));
  await next();
  const nonce = randomBytes(18).toString('base64');
  const bare = `n=,r=${nonce}`;
  const first = Buffer.from(`n,,${bare}`);
  socket.write(message('p', Buffer.concat([cstring('SCRAM-SHA-256'), int32(first.length), first])));
  const serverFirst = (await next()).subarray(9).toString();
  const given = Object.fromEntries(serverFirst.split(',').map((part) => [part[0], part.slice(2)]));
  if (!given.r?.startsWith(nonce)) throw new Error('the server answered another login');
  const keys = await deriveKeys(login.password, Buffer.from(given.s ?? '', 'base64'), Number(given.i));
  const final = `c=biws,r=${given.r}`;
  const signature = hmac(sha256(keys.clientKey), `${bare},${serverFirst},${final}`);
  const proof = Buffer.from(keys.clientKey.map((byte, at) => byte ^ (signature[at] ?? 0)));
  socket.write(message('p', Buffer.from(`${final},p=${proof.toString('base64')}`)));
  await next();
  const greeting: Buffer[] = [];
  for (;;) {
    const said = await next();
    greeting.push(said);
    if (said[0] === code('Z')) break;
  }
  await messages.return?.(undefined);
  return Buffer.concat(greeting);
}

/** Yields whole messages; leaves the socket open and silent when its reader stops. */
async function* readMessages(socket: Socket): AsyncGenerator<Buffer, undefined> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
    rest = Buffer.concat([rest, chunk]);
    while (rest.length >= 5 && rest.length > rest.readUInt32BE(1)) {
      const length = 1 + rest.readUInt32BE(1);
      yield rest.subarray(0, length);
      rest = rest.subarray(length);
    }
  }
  return undefined;
}

const code = (letter: string) => letter.charCodeAt(0);
const cstring = (text: string) => Buffer.from(`${text}\0`);

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}

const message = (type: string, body: Buffer) => Buffer.concat([Buffer.from(type), int32(body.length + 4), body]);

function startup(parameters: Readonly<Record<string, string>>): Buffer {
  const pairs = Object.entries(parameters).flatMap(([key, value]) => [cstring(key), cstring(value)]);
  const body = Buffer.concat([int32(196_608), ...pairs, Buffer.from([0])]);
  return Buffer.concat([int32(body.length + 4), body]);
}

function errorText(error: Buffer): string {
  const fields = error.subarray(5).toString().split('\0');
  return fields.find((field) => field.startsWith('M'))?.slice(1) ?? 'no reason given';
}
