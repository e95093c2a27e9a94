/** Pooled sessions whose server goes at every possible moment: a scripted server, and a client that records replies. */
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Duplex } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { eventually } from '../../../test/helpers/eventually.ts';
import {
  bind,
  bindComplete,
  commandComplete,
  copyData,
  copyDone,
  copyInResponse,
  dataRow,
  describeStatement,
  errorMessage,
  execute,
  flush,
  noData,
  parameterDescription,
  parse,
  parseComplete,
  query,
  readyForQuery,
  sync,
  terminate,
} from '../../../test/helpers/postgres-messages.ts';
import { createLogger } from '../../lib/log.ts';
import { defaultLimits } from '../kit/limits.ts';
import { Budgets } from '../permits/budget.ts';
import { FrameBuffer } from '../protocol/wire.ts';
import { errorField, severityField, sqlStateField } from './error-fields.ts';
import { Pool } from './pool.ts';
import { PooledSession } from './pooled-session.ts';
import { readTrackedValues } from './tracked-settings.ts';

const row = dataRow(2);
const complete = commandComplete('SELECT 1');
const reply = Buffer.concat([complete, readyForQuery()]);
const stopping = errorMessage('FATAL', '57P01');
const parseUnnamed = parse('', 'select 1');
const executeUnnamed = Buffer.concat([bind(''), execute()]);

/** Records what it receives: errors with severity and SQLSTATE, ReadyForQuery with its status, else the type. */
class Client extends Duplex {
  readonly received: string[] = [];
  readonly #frames = new FrameBuffer();

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.#frames.push(Buffer.from(chunk));
    for (let message = this.#frames.nextMessage(100_000); message; message = this.#frames.nextMessage(100_000)) {
      const { type, body } = message;
      if (type === 'E') this.received.push(`${errorField(body, severityField)} ${errorField(body, sqlStateField)}`);
      else this.received.push(type === 'Z' ? `ready ${body.toString()}` : type);
    }
    done();
  }

  send(...messages: Buffer[]): void {
    this.push(Buffer.concat(messages));
  }

  get isOpen(): boolean {
    return !this.writableEnded && !this.destroyed;
  }
}

/** One server connection: the end of the scripted server, and the end of the proxy. */
interface Backend {
  readonly socket: Socket;
  readonly proxyEnd: Socket;
  /** Everything that the server has received. */
  readonly received: () => string;
}

let directory: string;
let server: Server;
let backends: Backend[];
let pool: Pool;
/** Connections that the proxy has opened and the server has not accepted yet. */
const accepting: ((socket: Socket) => void)[] = [];
/** What happens to a connection before the pool has it. */
let onLogin: (backend: Backend) => Promise<void>;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'catnap-pool-session-'));
  const path = join(directory, 's');
  backends = [];
  onLogin = async () => {};
  server = createServer({ allowHalfOpen: true }, (socket) => accepting.shift()?.(socket));
  await new Promise<void>((resolve) => server.listen(path, resolve));
  pool = new Pool({
    endpointId: 'ep-a',
    name: 'a',
    budget: new Budgets().of('ep-a'),
    connect: async () => ({
      kind: 'open',
      socket: await openBackend(path),
      address: { kind: 'unix', path },
      key: { processId: 1, secret: 1 },
      greeting: Buffer.alloc(0),
      ready: readyForQuery(),
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

async function openBackend(path: string): Promise<Socket> {
  const accepted = new Promise<Socket>((resolve) => accepting.push(resolve));
  const proxyEnd = connect({ path, allowHalfOpen: true });
  const socket = await accepted;
  let received = '';
  socket.on('data', (chunk) => (received += chunk.toString('latin1')));
  socket.on('error', () => {});
  const backend = { socket, proxyEnd, received: () => received };
  backends.push(backend);
  await onLogin(backend);
  return proxyEnd;
}

function start(): Client {
  const client = new Client();
  new PooledSession({
    stream: client,
    pool,
    values: readTrackedValues(Buffer.alloc(0)),
    cancelMs: 100,
    onActivity: () => {},
    sent: { bytes: 0 },
    onRefusal: () => {},
    onClosed: () => {},
  });
  return client;
}

/** The n-th server connection, once it has received the text. */
async function backend(n: number, text: string): Promise<Backend> {
  await eventually(() => expect(backends[n]?.received() ?? '').toContain(text));
  const found = backends[n];
  if (found === undefined) throw new Error('no such connection');
  return found;
}

/** A client whose first transaction is over, so that the first server connection is idle. */
async function startWithIdle(): Promise<{ client: Client; idle: Backend }> {
  const client = start();
  client.send(query('before'));
  const idle = await backend(0, 'before');
  idle.socket.write(reply);
  await eventually(() => expect(client.received).toEqual(['C', 'ready I']));
  client.received.length = 0;
  return { client, idle };
}

/** The n-th connection gets the request, and its reply reaches the client. */
async function expectServed(client: Client, n: number, text: string): Promise<void> {
  const { socket } = await backend(n, text);
  const before = client.received.length;
  socket.write(reply);
  await eventually(() => expect(client.received.slice(before)).toEqual(['C', 'ready I']));
  expect(client.isOpen).toBe(true);
}

describe('a request that its server has not read is sent to another server', () => {
  it('when the idle connection ends at that moment', async () => {
    const { client, idle } = await startWithIdle();
    idle.proxyEnd.once('end', () => client.send(query('at the end')));
    idle.socket.end();
    await expectServed(client, 1, 'at the end');
    expect(client.received).toEqual(['C', 'ready I']);
  });

  it('when the idle connection has reported that it stops, and is not closed yet', async () => {
    const { client, idle } = await startWithIdle();
    idle.socket.write(stopping);
    await eventually(() => expect(idle.proxyEnd.bytesRead).toBe(reply.length + stopping.length));
    client.send(query('after'));
    await expectServed(client, 1, 'after');
    expect(idle.received()).not.toContain('after');
  });

  it('when the server reports that it stops instead of replying', async () => {
    const { client, idle } = await startWithIdle();
    client.send(query('refused'));
    await backend(0, 'refused');
    idle.socket.end(stopping);
    await expectServed(client, 1, 'refused');
    expect(client.received).toEqual(['C', 'ready I']);
  });

  it('as a whole, also when it came in pieces', async () => {
    const { client, idle } = await startWithIdle();
    const whole = Buffer.concat([parseUnnamed, executeUnnamed, sync]);
    client.send(query('first'), whole.subarray(0, 3));
    await backend(0, 'first');
    idle.socket.write(reply);
    await eventually(() => expect(client.received).toEqual(['C', 'ready I']));
    client.send(whole.subarray(3, -5));
    client.send(whole.subarray(-5));
    await backend(0, sync.toString('latin1'));
    idle.socket.end(stopping);
    await eventually(() => expect(backends[1]?.received().endsWith(sync.toString('latin1'))).toBe(true));
    const sentAgain = backends[1]?.received() ?? '';
    expect(sentAgain).toBe(idle.received().slice(-sentAgain.length));
    expect(sentAgain[0]).toBe('P');
    expect(client.received).toEqual(['C', 'ready I']);
    expect(client.isOpen).toBe(true);
  });

  it('with the Terminate behind it', async () => {
    const { client, idle } = await startWithIdle();
    client.send(query('last'), terminate);
    await backend(0, 'last');
    idle.socket.end(stopping);
    (await backend(1, 'last')).socket.write(reply);
    await eventually(() => expect(client.isOpen).toBe(false));
    expect(client.received).toEqual(['C', 'ready I']);
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
    client.send(query('hello'));
    await expectServed(client, 2, 'hello');
  });
});

describe('a client whose statement is lost gets an error and stays connected', () => {
  it.each([
    ['after rows, without an error of the server', [row], 'ERROR 08006'],
    ['after rows, with the error of the server', [row, stopping], 'ERROR 57P01'],
    [
      'in a function, which may have committed something',
      [errorMessage('FATAL', '57P01', 'PL/pgSQL function f()')],
      'ERROR 57P01',
    ],
    ['without any reply', [], 'ERROR 08006'],
  ])('%s', async (_, sent, error) => {
    const { client, idle } = await startWithIdle();
    client.send(query('lost'));
    await backend(0, 'lost');
    idle.socket.end(Buffer.concat(sent));
    await eventually(() => expect(client.received.at(-1)).toBe('ready I'));
    expect(client.received).toEqual([...(sent[0] === row ? ['D'] : []), error, 'ready I']);
    client.send(query('next'));
    await expectServed(client, 1, 'next');
    expect(backends[1]?.received()).not.toContain('lost');
  });

  it('once for each request that it has pipelined', async () => {
    const { client, idle } = await startWithIdle();
    client.send(query('one'), query('two'), parseUnnamed, executeUnnamed, sync);
    await backend(0, 'two');
    idle.socket.end(Buffer.concat([reply, stopping]));
    await eventually(() => expect(client.received).toHaveLength(6));
    expect(client.received).toEqual(['C', 'ready I', 'ERROR 57P01', 'ready I', 'ERROR 57P01', 'ready I']);
    client.send(query('next'));
    await expectServed(client, 1, 'next');
  });

  it('and the rest of its COPY is dropped', async () => {
    const { client, idle } = await startWithIdle();
    const data = copyData(9_000);
    client.send(query('copy'));
    await backend(0, 'copy');
    idle.socket.write(copyInResponse);
    await eventually(() => expect(client.received).toEqual(['G']));
    client.send(data, data.subarray(0, 8_500));
    await eventually(() => expect(idle.received().length).toBeGreaterThan(17_000));
    idle.socket.end(stopping);
    await eventually(() => expect(client.received).toEqual(['G', 'ERROR 57P01', 'ready I']));
    client.send(data.subarray(8_500), data, copyDone, query('next'));
    await expectServed(client, 1, 'next');
    expect(backends[1]?.received()).toBe(query('next').toString('latin1'));
  });
});

describe('a client that loses nothing with its server notices nothing', () => {
  it('between the description of a statement and its use', async () => {
    const { client, idle } = await startWithIdle();
    client.send(parseUnnamed, describeStatement(''), flush);
    await backend(0, flush.toString('latin1'));
    idle.socket.write(Buffer.concat([parseComplete, parameterDescription, noData]));
    await eventually(() => expect(client.received).toEqual(['1', 't', 'n']));
    idle.socket.end(stopping);
    await eventually(() => expect(idle.proxyEnd.destroyed).toBe(true));
    client.send(executeUnnamed, sync);
    const { socket, received } = await backend(1, sync.toString('latin1'));
    expect(received()).toBe(Buffer.concat([parseUnnamed, executeUnnamed, sync]).toString('latin1'));
    socket.write(Buffer.concat([parseComplete, bindComplete, reply]));
    await eventually(() => expect(client.received).toEqual(['1', 't', 'n', '2', 'C', 'ready I']));
    expect(client.isOpen).toBe(true);
  });

  it('when the server stops right after its reply', async () => {
    const { client, idle } = await startWithIdle();
    client.send(query('slow'));
    await backend(0, 'slow');
    idle.socket.end(Buffer.concat([row, reply, errorMessage('FATAL', '57P01', 'anything')]));
    await eventually(() => expect(client.received).toEqual(['D', 'C', 'ready I']));
    client.send(query('next'));
    await expectServed(client, 1, 'next');
    expect(client.received).toEqual(['D', 'C', 'ready I', 'C', 'ready I']);
  });
});

describe('a client is disconnected with its server', () => {
  it.each([
    ['in a transaction', [complete, readyForQuery('T'), stopping], ['C', 'ready T', 'FATAL 57P01']],
    [
      'in a transaction, without an error of the server',
      [complete, readyForQuery('T')],
      ['C', 'ready T', 'FATAL 08006'],
    ],
    ['in the middle of a message', [row, row.subarray(0, -1)], ['D']],
  ])('%s', async (_, sent, received) => {
    const { client, idle } = await startWithIdle();
    client.send(query('begin'));
    await backend(0, 'begin');
    idle.socket.end(Buffer.concat(sent));
    await eventually(() => expect(client.isOpen).toBe(false));
    expect(client.received).toEqual(received);
  });

  it('between the messages of a batch that has no Sync yet', async () => {
    const { client, idle } = await startWithIdle();
    client.send(parseUnnamed, executeUnnamed, flush);
    await backend(0, flush.toString('latin1'));
    idle.socket.write(Buffer.concat([parseComplete, bindComplete, complete]));
    await eventually(() => expect(client.received).toEqual(['1', '2', 'C']));
    idle.socket.end(stopping);
    await eventually(() => expect(client.isOpen).toBe(false));
    expect(client.received).toEqual(['1', '2', 'C', 'FATAL 57P01']);
  });

  it('that has told it so, whatever the client sends before the connection is closed', async () => {
    const { client, idle } = await startWithIdle();
    client.send(parseUnnamed, executeUnnamed, flush);
    await backend(0, flush.toString('latin1'));
    idle.socket.write(Buffer.concat([parseComplete, bindComplete, stopping]));
    await eventually(() => expect(client.received).toEqual(['1', '2', 'FATAL 57P01']));
    client.send(sync, query('after'));
    await backend(0, 'after');
    idle.socket.end();
    await eventually(() => expect(client.isOpen).toBe(false));
    expect(client.received).toEqual(['1', '2', 'FATAL 57P01']);
  });
});
