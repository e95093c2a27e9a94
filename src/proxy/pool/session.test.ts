/** Pooled sessions whose server goes at every moment: a scripted server, and a client that is asked what it heard. */
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Duplex } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { eventually } from '../../../test/helpers/eventually.ts';
import { createLogger } from '../../lib/log.ts';
import { defaultLimits } from '../kit/limits.ts';
import { Budgets } from '../permits/budget.ts';
import { cstring, encodeMessage, FrameBuffer, int32 } from '../protocol/wire.ts';
import { Pool } from './pool.ts';
import { errorField, severityField, sqlStateField } from './reply-bodies.ts';
import { valuesOf } from './server-connection.ts';
import { PooledSession } from './session.ts';

const query = (text: string) => encodeMessage('Q', cstring(text));
const parse = encodeMessage('P', cstring(''), cstring('select 1'), Buffer.from([0, 0]));
const bind = encodeMessage('B', cstring(''), cstring(''), Buffer.alloc(6));
const execute = encodeMessage('E', cstring(''), int32(0));
const [sync, flush, terminate] = [encodeMessage('S'), encodeMessage('H'), encodeMessage('X')];
const complete = encodeMessage('C', cstring('SELECT 1'));
const row = encodeMessage('D', Buffer.from([0, 0]));
const ready = (status = 'I') => encodeMessage('Z', Buffer.from(status));
const answer = Buffer.concat([complete, ready()]);
const fatal = (state: string, ...more: string[]) =>
  encodeMessage('E', ...['SFATAL', 'VFATAL', `C${state}`, 'Mthe end', ...more].map(cstring), Buffer.from([0]));
const stopping = fatal('57P01');

/** What a client hears, message by message: errors with their severity and state, ReadyForQuery with its status. */
class Client extends Duplex {
  readonly heard: string[] = [];
  readonly #frames = new FrameBuffer();

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.#frames.push(Buffer.from(chunk));
    for (let message = this.#frames.nextMessage(100_000); message; message = this.#frames.nextMessage(100_000)) {
      const { type, body } = message;
      if (type === 'E') this.heard.push(`${errorField(body, severityField)} ${errorField(body, sqlStateField)}`);
      else this.heard.push(type === 'Z' ? `ready ${body.toString()}` : type);
    }
    done();
  }

  say(...messages: Buffer[]): void {
    this.push(Buffer.concat(messages));
  }

  get isOpen(): boolean {
    return !this.writableEnded && !this.destroyed;
  }
}

/** One connection as the server has it, and the proxy's end of it. */
interface Backend {
  readonly socket: Socket;
  readonly proxyEnd: Socket;
  readonly got: () => string;
}

let directory: string;
let server: Server;
let backends: Backend[];
let pool: Pool;
const waiting: ((socket: Socket) => void)[] = [];
/** What happens to a connection before the pool has it. */
let onLogin: (backend: Backend) => Promise<void>;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'catnap-pool-session-'));
  const path = join(directory, 's');
  backends = [];
  onLogin = async () => {};
  server = createServer({ allowHalfOpen: true }, (socket) => waiting.shift()?.(socket));
  await new Promise<void>((resolve) => server.listen(path, resolve));
  pool = new Pool({
    endpointId: 'ep-a',
    name: 'a',
    budget: new Budgets().of('ep-a'),
    connect: async () => ({
      kind: 'open',
      socket: await open(path),
      ...{ address: { kind: 'unix', path }, key: { processId: 1, secret: 1 } },
      ...{ greeting: Buffer.alloc(0), ready: ready() },
    }),
    limits: defaultLimits,
    log: createLogger({ level: 'silent', process: 'proxy' }),
  });
});
afterEach(async () => {
  pool.close();
  for (const { socket } of backends) socket.destroy();
  await new Promise((resolve) => server.close(resolve));
  await rm(directory, { recursive: true, force: true });
});

async function open(path: string): Promise<Socket> {
  const accepted = new Promise<Socket>((resolve) => waiting.push(resolve));
  const proxyEnd = connect({ path, allowHalfOpen: true });
  const socket = await accepted;
  let got = '';
  socket.on('data', (chunk) => (got += chunk.toString('latin1')));
  socket.on('error', () => {});
  const backend = { socket, proxyEnd, got: () => got };
  backends.push(backend);
  await onLogin(backend);
  return proxyEnd;
}

function start(): Client {
  const client = new Client();
  new PooledSession({
    ...{ stream: client, pool, values: valuesOf(Buffer.alloc(0)), cancelMs: 100 },
    ...{ onActivity: () => {}, onRefusal: () => {}, onClosed: () => {} },
  });
  return client;
}

/** The n-th server connection, when it has got this. */
async function backend(n: number, text: string): Promise<Backend> {
  await eventually(() => expect(backends[n]?.got() ?? '').toContain(text));
  const found = backends[n];
  if (found === undefined) throw new Error('no such connection');
  return found;
}

/** A client that has been served once: the first connection is idle. */
async function startWithIdle(): Promise<{ client: Client; idle: Backend }> {
  const client = start();
  client.say(query('before'));
  const idle = await backend(0, 'before');
  idle.socket.write(answer);
  await eventually(() => expect(client.heard).toEqual(['C', 'ready I']));
  client.heard.length = 0;
  return { client, idle };
}

/** What is asked next is served by the n-th connection. */
async function expectServed(client: Client, n: number, text: string): Promise<void> {
  const { socket } = await backend(n, text);
  const before = client.heard.length;
  socket.write(answer);
  await eventually(() => expect(client.heard.slice(before)).toEqual(['C', 'ready I']));
  expect(client.isOpen).toBe(true);
}

describe('a request that its server has not begun is sent to another one', () => {
  it('when the idle connection ends at that very moment', async () => {
    const { client, idle } = await startWithIdle();
    idle.proxyEnd.once('end', () => client.say(query('at the end')));
    idle.socket.end();
    await expectServed(client, 1, 'at the end');
    expect(client.heard).toEqual(['C', 'ready I']);
  });

  it('when the idle connection has said that it stops, and is still there', async () => {
    const { client, idle } = await startWithIdle();
    idle.socket.write(stopping);
    await eventually(() => expect(idle.proxyEnd.bytesRead).toBe(answer.length + stopping.length));
    client.say(query('after'));
    await expectServed(client, 1, 'after');
    expect(idle.got()).not.toContain('after');
  });

  it('when the server says that it stops instead of answering', async () => {
    const { client, idle } = await startWithIdle();
    client.say(query('refused'));
    await backend(0, 'refused');
    idle.socket.end(stopping);
    await expectServed(client, 1, 'refused');
    expect(client.heard).toEqual(['C', 'ready I']);
  });

  it('whole, also when it came in pieces', async () => {
    const { client, idle } = await startWithIdle();
    const whole = Buffer.concat([parse, bind, execute, sync]);
    client.say(query('first'), whole.subarray(0, 3));
    await backend(0, 'first');
    idle.socket.write(answer);
    await eventually(() => expect(client.heard).toEqual(['C', 'ready I']));
    client.say(whole.subarray(3, -5));
    client.say(whole.subarray(-5));
    await backend(0, sync.toString('latin1'));
    idle.socket.end(stopping);
    await eventually(() => expect(backends[1]?.got().endsWith(sync.toString('latin1'))).toBe(true));
    const [sentAgain, sentFirst] = [backends[1]?.got(), idle.got().slice(-(backends[1]?.got().length ?? 0))];
    expect(sentAgain).toBe(sentFirst);
    expect(sentAgain?.[0]).toBe('P');
    expect(client.heard).toEqual(['C', 'ready I']);
    expect(client.isOpen).toBe(true);
  });

  it('with the goodbye behind it', async () => {
    const { client, idle } = await startWithIdle();
    client.say(query('last'), terminate);
    await backend(0, 'last');
    idle.socket.end(stopping);
    (await backend(1, 'last')).socket.write(answer);
    await eventually(() => expect(client.isOpen).toBe(false));
    expect(client.heard).toEqual(['C', 'ready I']);
  });

  it('when a new connection is closed before it was used', async () => {
    onLogin = async ({ proxyEnd, socket }) => {
      if (backends.length > 2) return;
      socket.end();
      proxyEnd.resume();
      await once(proxyEnd, 'end');
      proxyEnd.destroy();
    };
    const client = start();
    client.say(query('hello'));
    await expectServed(client, 2, 'hello');
  });
});

describe('a client whose statement is lost is told so, and goes on', () => {
  it.each([
    ['after rows, without a word', [row], 'ERROR 08006'],
    ['after rows, in the words of the server', [row, stopping], 'ERROR 57P01'],
    ['in a function, which may have committed', [fatal('57P01', 'WPL/pgSQL function f()')], 'ERROR 57P01'],
    ['with nothing said at all', [], 'ERROR 08006'],
  ])('%s', async (_, said, error) => {
    const { client, idle } = await startWithIdle();
    client.say(query('lost'));
    await backend(0, 'lost');
    idle.socket.end(Buffer.concat(said));
    await eventually(() => expect(client.heard.at(-1)).toBe('ready I'));
    expect(client.heard).toEqual([...(said[0] === row ? ['D'] : []), error, 'ready I']);
    client.say(query('next'));
    await expectServed(client, 1, 'next');
    expect(backends[1]?.got()).not.toContain('lost');
  });

  it('once for each request that it has sent ahead', async () => {
    const { client, idle } = await startWithIdle();
    client.say(query('one'), query('two'), parse, bind, execute, sync);
    await backend(0, 'two');
    idle.socket.end(Buffer.concat([answer, stopping]));
    await eventually(() => expect(client.heard).toHaveLength(6));
    expect(client.heard).toEqual(['C', 'ready I', 'ERROR 57P01', 'ready I', 'ERROR 57P01', 'ready I']);
    client.say(query('next'));
    await expectServed(client, 1, 'next');
  });

  it('between the description of a statement and its use, without a word', async () => {
    const { client, idle } = await startWithIdle();
    client.say(parse, encodeMessage('D', Buffer.from('S'), cstring('')), flush);
    await backend(0, flush.toString('latin1'));
    idle.socket.write(Buffer.concat([encodeMessage('1'), encodeMessage('t', Buffer.alloc(2)), encodeMessage('n')]));
    await eventually(() => expect(client.heard).toEqual(['1', 't', 'n']));
    idle.socket.end(stopping);
    await eventually(() => expect(idle.proxyEnd.destroyed).toBe(true));
    client.say(bind, execute, sync);
    const { socket, got } = await backend(1, sync.toString('latin1'));
    expect(got()).toBe(Buffer.concat([parse, bind, execute, sync]).toString('latin1'));
    socket.write(Buffer.concat([encodeMessage('1'), encodeMessage('2'), answer]));
    await eventually(() => expect(client.heard).toEqual(['1', 't', 'n', '2', 'C', 'ready I']));
    expect(client.isOpen).toBe(true);
  });

  it('and the rest of its COPY is dropped', async () => {
    const { client, idle } = await startWithIdle();
    const data = encodeMessage('d', Buffer.alloc(9_000, 'x'));
    client.say(query('copy'));
    await backend(0, 'copy');
    idle.socket.write(encodeMessage('G', Buffer.from([0, 0, 0])));
    await eventually(() => expect(client.heard).toEqual(['G']));
    client.say(data, data.subarray(0, 8_500));
    await eventually(() => expect(idle.got().length).toBeGreaterThan(17_000));
    idle.socket.end(stopping);
    await eventually(() => expect(client.heard).toEqual(['G', 'ERROR 57P01', 'ready I']));
    client.say(data.subarray(8_500), data, encodeMessage('c'), query('next'));
    await expectServed(client, 1, 'next');
    expect(backends[1]?.got()).toBe(query('next').toString('latin1'));
  });

  it('and hears nothing of a server that stops behind its answer', async () => {
    const { client, idle } = await startWithIdle();
    client.say(query('slow'));
    await backend(0, 'slow');
    idle.socket.end(Buffer.concat([row, answer, fatal('57P01', 'Wanything')]));
    await eventually(() => expect(client.heard).toEqual(['D', 'C', 'ready I']));
    client.say(query('next'));
    await expectServed(client, 1, 'next');
    expect(client.heard).toEqual(['D', 'C', 'ready I', 'C', 'ready I']);
  });
});

describe('a client goes with its server', () => {
  it.each([
    ['in a transaction', [complete, ready('T'), stopping], ['C', 'ready T', 'FATAL 57P01']],
    ['in a transaction, without a word', [complete, ready('T')], ['C', 'ready T', 'FATAL 08006']],
    ['in the middle of a message', [row, row.subarray(0, -1)], ['D']],
  ])('%s', async (_, said, heard) => {
    const { client, idle } = await startWithIdle();
    client.say(query('begin'));
    await backend(0, 'begin');
    idle.socket.end(Buffer.concat(said));
    await eventually(() => expect(client.isOpen).toBe(false));
    expect(client.heard).toEqual(heard);
  });

  it('between the messages of a batch that is not ended', async () => {
    const { client, idle } = await startWithIdle();
    client.say(parse, bind, execute, flush);
    await backend(0, flush.toString('latin1'));
    idle.socket.write(Buffer.concat([encodeMessage('1'), encodeMessage('2'), complete]));
    await eventually(() => expect(client.heard).toEqual(['1', '2', 'C']));
    idle.socket.end(stopping);
    await eventually(() => expect(client.isOpen).toBe(false));
    expect(client.heard).toEqual(['1', '2', 'C', 'FATAL 57P01']);
  });
});
