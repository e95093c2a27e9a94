/**
 * A session of Postgres's wire protocol, logged in as the server asks for it, whose socket stays open for the caller to
 * use. What the server sent about itself is kept, for the caller to repeat.
 */
import { createHash, randomBytes } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { encrypt, type TlsMode } from '../../lib/client-tls.ts';
import { deriveKeys, hmac, sha256 } from '../../lib/scram-verifier.ts';
import type { Login } from '../server/admin-session.ts';

export interface WireSession {
  readonly socket: Socket;
  /** From "authenticated" to "ready", as the server sent it. */
  readonly greeting: Buffer;
}

const loginMsMax = 10_000;

/** A server elsewhere. */
export interface WireAddress {
  readonly host: string;
  readonly port: number;
  readonly tls: TlsMode;
}

/** `to` is the path of a socket, or a server elsewhere; `options` as libpq has them. */
export async function openWireSession(to: string | WireAddress, login: Login, options: string): Promise<WireSession> {
  const plain = typeof to === 'string' ? connect({ path: to }) : connect({ host: to.host, port: to.port });
  let socket = limited(plain);
  try {
    if (typeof to !== 'string') {
      const encrypted = await encrypt(plain, to.host, to.tls);
      plain.removeAllListeners('timeout');
      socket = limited(encrypted);
    }
    const greeting = await logIn(socket, login, options);
    socket.setTimeout(0);
    return { socket, greeting };
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

function limited(socket: Socket): Socket {
  return socket.setTimeout(loginMsMax, () => socket.destroy(new Error('the server does not answer')));
}

/** Kinds of "authentication request". */
const methods = { done: 0, clearText: 3, md5: 5, scram: 10 } as const;

async function logIn(socket: Socket, login: Login, options: string): Promise<Buffer> {
  const messages = readMessages(socket);
  const next = async () => {
    const { value } = await messages.next();
    if (value === undefined) throw new Error('the server closed the connection');
    if (value[0] === code('E')) throw new Error(`the server refused the login: ${errorText(value)}`);
    return value;
  };
  const about = { user: login.username, database: login.database, application_name: 'catnap' };
  socket.write(startup(options === '' ? about : { ...about, options }));
  const greeting = [await prove(socket, login, next)];
  for (;;) {
    const said = await next();
    greeting.push(said);
    if (said[0] === code('Z')) break;
  }
  await messages.return?.(undefined);
  return Buffer.concat(greeting);
}

/** Returns the message that the login is accepted. */
async function prove(socket: Socket, login: Login, next: () => Promise<Buffer>): Promise<Buffer> {
  const asked = await next();
  const method = asked.readUInt32BE(5);
  if (method === methods.done) return asked;
  if (method === methods.clearText) socket.write(message('p', cstring(login.password)));
  else if (method === methods.md5) socket.write(message('p', cstring(md5Proof(login, asked.subarray(9, 13)))));
  else if (method === methods.scram) return proveByScram(socket, login, next);
  else throw new Error(`the server asks for a login of kind ${method}, which is not known here`);
  return next();
}

function md5Proof({ username, password }: Login, salt: Buffer): string {
  const md5 = (text: string | Buffer) => createHash('md5').update(text).digest('hex');
  return `md5${md5(Buffer.concat([Buffer.from(md5(`${password}${username}`)), salt]))}`;
}

async function proveByScram(socket: Socket, login: Login, next: () => Promise<Buffer>): Promise<Buffer> {
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
  // "SASL final" comes before it.
  await next();
  return next();
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
