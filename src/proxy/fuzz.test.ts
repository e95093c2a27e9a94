/** The port under bytes of every kind: cut anywhere, ended anywhere, changed anywhere. It answers, and goes on. */
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ensureCertificates } from '../lib/certificates.ts';
import { systemClock } from '../lib/clock.ts';
import { CatnapError } from '../lib/errors.ts';
import { createLogger } from '../lib/log.ts';
import { buildVerifier, deriveKeys } from '../lib/scram-verifier.ts';
import type { ProxyLimits } from './kit/limits.ts';
import { type RunningProxy, startProxy } from './listener.ts';
import { MessageStream } from './protocol/message-stream.ts';
import {
  parseAuthentication,
  parseErrorResponse,
  requestCodes,
  saslInitialResponse,
  saslResponse,
  startupMessage,
} from './protocol/messages.ts';
import { proveToServer, scramMechanism, startClientExchange } from './protocol/scram.ts';
import { int32 } from './protocol/wire.ts';

const iterations = 16;
const verifier = buildVerifier('right', undefined, iterations);
let directory: string;
let proxy: RunningProxy;
let impatient: RunningProxy;
let wakes = 0;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'catnap-fuzz-'));
  proxy = await start({});
  impatient = await start({ authenticationMs: 300 });
});
afterAll(async () => {
  await Promise.all([proxy.close(), impatient.close()]);
  await rm(directory, { recursive: true, force: true });
});

async function start(limits: Partial<ProxyLimits>): Promise<RunningProxy> {
  const certificates = await ensureCertificates({
    directory,
    domain: 'localhost',
    region: 'local',
    clock: systemClock,
  });
  return startProxy({
    controlPlane: {
      findLogin: async (_endpointId, role) => ({
        ...{ verifier: role === 'ann' ? verifier : null, disabled: false, allowedIps: [] },
      }),
      findAddress: async () => null,
      reportActivity: async () => {},
      wake: async () => {
        wakes += 1;
        throw new CatnapError('unavailable', 'as far as it goes');
      },
    },
    ...{ bind: '127.0.0.1', port: 0, tls: () => certificates, clock: systemClock, limits },
    ...{ domain: 'localhost', region: 'local', log: createLogger({ level: 'silent', process: 'proxy' }) },
  });
}

const gss = Buffer.concat([int32(8), int32(requestCodes.gssenc)]);
const startup = startupMessage([
  ['user', 'ann'],
  ['options', 'endpoint=ep-a'],
  ['application_name', 'fuzz'],
]);
const cuts = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 12 });

/** Waits for the loop to turn between two pieces, so that they arrive as pieces. */
async function writeInPieces(socket: Socket, bytes: Buffer, sizes: readonly number[]): Promise<void> {
  for (let at = 0, i = 0; at < bytes.length; i++) {
    const size = sizes[i % sizes.length] ?? 1;
    if (!socket.destroyed) socket.write(bytes.subarray(at, at + size));
    at += size;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

async function open(at = proxy): Promise<Socket> {
  const socket = connect(at.port, '127.0.0.1');
  socket.on('error', () => {});
  socket.setNoDelay(true);
  await once(socket, 'connect');
  return socket;
}

/** Up to the wake, which says that all before it was understood. */
async function logIn(sizes: readonly number[], greeting: Buffer): Promise<string> {
  const socket = await open();
  const messages = new MessageStream(socket, 100_000);
  const send = (bytes: Buffer) => writeInPieces(socket, bytes, sizes);
  try {
    if (greeting === gss) {
      await send(gss);
      expect(await messages.firstByte()).toBe('N'.charCodeAt(0));
      // What follows the one byte is framed; take it off by reading on.
      messages.release();
      socket.read();
      return await converse(new MessageStream(socket, 100_000), send);
    }
    return await converse(messages, send);
  } finally {
    socket.destroy();
  }
}

async function converse(messages: MessageStream, send: (bytes: Buffer) => Promise<void>): Promise<string> {
  await send(startup);
  expect(parseAuthentication((await messages.readMessage()).body).kind).toBe('sasl');
  const exchange = startClientExchange();
  await send(saslInitialResponse(scramMechanism, exchange.first));
  const answer = parseAuthentication((await messages.readMessage()).body);
  if (answer.kind !== 'sasl_continue') throw new Error(`unexpected ${answer.kind}`);
  const salt = Buffer.from(/,s=([^,]+)/.exec(answer.data)?.[1] ?? '', 'base64');
  const keys = await deriveKeys('right', salt, iterations);
  await send(saslResponse(proveToServer(exchange, answer.data, keys, { salt, iterations })?.final ?? ''));
  for (;;) {
    const { type, body } = await messages.readMessage();
    if (type === 'E') return parseErrorResponse(body).message;
  }
}

it('a login is understood however its bytes are cut', async () => {
  await fc.assert(
    fc.asyncProperty(cuts, fc.constantFrom(Buffer.alloc(0), gss), async (sizes, greeting) => {
      expect(await logIn(sizes, greeting)).toBe('as far as it goes');
    }),
    { numRuns: 40 },
  );
});

/** Everything that comes back until the proxy closes; an impatient one is left to find out by itself. */
async function answerTo(bytes: Buffer, sizes: readonly number[], at?: RunningProxy): Promise<Buffer> {
  const socket = await open(at);
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  const closed = new Promise((resolve) => socket.once('close', resolve));
  await writeInPieces(socket, bytes, sizes);
  if (at === undefined) socket.end();
  await closed;
  return Buffer.concat(chunks);
}

async function expectHarmless(bytes: Buffer, sizes: readonly number[]): Promise<void> {
  const before = wakes;
  const answer = await answerTo(bytes, sizes);
  // Nothing, one byte of a negotiation, a message of the protocol, or a TLS alert.
  if (answer.length > 0) expect('NSREv\x15'.includes(String.fromCharCode(answer[0] ?? 0))).toBe(true);
  expect(wakes).toBe(before);
}

it('a login that ends anywhere ends quietly', async () => {
  const whole = Buffer.concat([gss, startup, saslInitialResponse(scramMechanism, startClientExchange().first)]);
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 0, max: whole.length }), cuts, (end, sizes) =>
      expectHarmless(whole.subarray(0, end), sizes),
    ),
    { numRuns: 60 },
  );
});

it('a login that was changed anywhere, and bytes that are none, wake nothing and stop nothing', async () => {
  const changed = fc.tuple(fc.nat({ max: startup.length - 1 }), fc.integer({ min: 1, max: 255 })).map(([at, by]) => {
    const bytes = Buffer.from(startup);
    bytes[at] = (bytes[at] ?? 0) ^ by;
    return bytes;
  });
  const noise = fc.uint8Array({ minLength: 1, maxLength: 300 }).map((bytes) => Buffer.from(bytes));
  const tooLong = fc.integer({ min: 8, max: 2 ** 31 - 1 }).map((length) => Buffer.concat([int32(length), startup]));
  await fc.assert(
    fc.asyncProperty(fc.oneof(changed, noise, tooLong), cuts, (bytes, sizes) => expectHarmless(bytes, sizes)),
    { numRuns: 120 },
  );
  expect(await logIn([7], Buffer.alloc(0))).toBe('as far as it goes');
});

it('who stops in the middle is cut off in time', async () => {
  const answer = await answerTo(startup.subarray(0, 20), [20], impatient);
  expect(answer.toString('latin1')).toContain('Authentication timed out');
});
