/** Statements on connections that break off under them, plain and encrypted. */
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { type AddressInfo, connect as connectSocket, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TLSSocket } from 'node:tls';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { freePort } from '../../test/helpers/free-ports.ts';
import { type Certificates, ensureCertificates } from '../lib/certificates.ts';
import { systemClock } from '../lib/clock.ts';
import { connect } from './client.ts';

let folder: string;
let certificates: Certificates;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'broken-connections-'));
  certificates = await ensureCertificates({ directory: folder, domain: 'test', region: 'here', clock: systemClock });
});
afterAll(() => rm(folder, { recursive: true }));

/** Passes on to the tests' own database, and breaks a connection off, as a network does, when it is asked to sleep. */
function relay(client: Socket, network: Socket): void {
  const server = connectSocket(inject('systemDatabase').path);
  for (const socket of [client, network]) socket.on('error', () => {}).on('close', () => server.destroy());
  server.on('error', () => {}).on('close', () => client.destroy());
  client.on('data', (chunk) => (chunk.includes('pg_sleep') ? network.resetAndDestroy() : server.write(chunk)));
  server.pipe(client);
}

function relayEncrypted(network: Socket): void {
  network
    .on('error', () => {})
    .once('data', () => {
      network.write('S');
      relay(new TLSSocket(network, { isServer: true, key: certificates.key, cert: certificates.cert }), network);
    });
}

interface Way {
  readonly name: string;
  readonly accept: (network: Socket) => void;
  readonly query: string;
  /** Hosts before the one that answers. */
  readonly before?: () => Promise<string>;
}

const nobody = async () => `127.0.0.1:${await freePort()},`;
const ways: readonly Way[] = [
  { name: 'plain', accept: (network) => relay(network, network), query: '' },
  { name: 'plain, on the second host', accept: (network) => relay(network, network), query: '', before: nobody },
  { name: 'encrypted', accept: relayEncrypted, query: '?sslmode=require' },
  { name: 'encrypted, on the second host', accept: relayEncrypted, query: '?sslmode=prefer', before: nobody },
];

/** In clear text. */
const askForPassword = Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 3]);

async function listening(server: Server): Promise<number> {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return (server.address() as AddressInfo).port;
}

function open(hosts: string, query: string, poolSize = 1) {
  const { username, password, database } = inject('systemDatabase');
  return connect({ url: `postgres://${hosts}/${query}`, username, password, database }, poolSize, 'test');
}

describe.each(ways)('$name', ({ accept, query, before = async () => '' }) => {
  let server: Server;
  let hosts: string;
  beforeAll(async () => {
    server = createServer(accept);
    hosts = `${await before()}127.0.0.1:${await listening(server)}`;
  });
  afterAll(() => server.close());

  test('a statement right behind a broken connection is carried out or fails, and the next ones go on', async () => {
    const sql = open(hosts, query);
    for (let round = 0; round < 10; round++) {
      const later = await sql`select pg_sleep(1)`.catch(() => Promise.allSettled([sql`select 1`, sql`select 2`]));
      expect(later).toHaveLength(2);
      expect(await sql`select 3 as n`).toEqual([{ n: 3 }]);
    }
    await sql.end({ timeout: 0 });
  });

  test('so is a transaction', async () => {
    const sql = open(hosts, query);
    const lastWord = await sql`select pg_sleep(1)`.catch(() => Promise.allSettled([sql.begin((tx) => tx`select 1`)]));
    expect(lastWord).toHaveLength(1);
    expect(await sql.begin((tx) => tx`select 3 as n`)).toEqual([{ n: 3 }]);
    await sql.end({ timeout: 0 });
  });

  test('every statement comes to an end, however many connections break', async () => {
    const sql = open(hosts, query, 3);
    const ask = (index: number) => (index % 7 === 3 ? sql`select pg_sleep(1)` : sql`select ${index}::int`);
    for (let round = 0; round < 30; round++) {
      const together = Promise.allSettled(Array.from({ length: 20 }, (_, index) => ask(index)));
      const after = Promise.allSettled([ask(3).catch(() => ask(4)), sql.begin((tx) => tx`select 1`)]);
      expect([...(await together), ...(await after)]).toHaveLength(22);
      expect(await sql`select 3 as n`.catch(() => sql`select 3 as n`)).toEqual([{ n: 3 }]);
    }
    await sql.end({ timeout: 0 });
  });
});

describe('a server without TLS', () => {
  const refusing = createServer((network) => {
    network.on('error', () => {}).once('data', (asked) => (asked.length === 8 ? refuse(network) : network.destroy()));
  });
  const refuse = (network: Socket) => {
    network.write('N');
    relay(network, network);
  };
  let hosts: string;
  beforeAll(async () => {
    hosts = `127.0.0.1:${await listening(refusing)}`;
  });
  afterAll(() => refusing.close());

  test.each(['require', 'verify-full'])('is refused with sslmode=%s, and every statement is told why', async (mode) => {
    const sql = open(hosts, `?sslmode=${mode}`);
    const said = await Promise.allSettled([sql`select 1`, sql`select 2`, sql.begin((tx) => tx`select 3`)]);
    for (const answer of said) expect(answer).toMatchObject({ reason: { message: 'the server offers no TLS' } });
    await sql.end({ timeout: 0 });
  });

  test('is used as it is with sslmode=prefer', async () => {
    const sql = open(hosts, '?sslmode=prefer');
    expect(await sql`select 3 as n`).toEqual([{ n: 3 }]);
    await sql.end({ timeout: 0 });
  });
});

describe('a server that closes before a login is through', () => {
  const ends: readonly (readonly [string, (network: Socket) => void])[] = [
    ['at once', (network) => network.end()],
    ['after the greeting', (network) => network.once('data', () => network.end())],
    ['after words of another protocol', (network) => network.once('data', () => network.end('HTTP/1.1 400 No\r\n'))],
    ['in the middle of the login', (network) => network.once('data', () => network.end(askForPassword))],
  ];

  test.each(ends)('%s fails the statement, and is not asked again', async (_, accept) => {
    let connections = 0;
    const server = createServer((network) => {
      connections += 1;
      accept(network.on('error', () => {}));
    });
    const sql = open(`127.0.0.1:${await listening(server)}`, '');
    try {
      await expect(sql`select 1`).rejects.toMatchObject({ code: 'CONNECTION_CLOSED' });
      expect(connections).toBe(1);
      await expect(sql.begin((tx) => tx`select 1`)).rejects.toMatchObject({ code: 'CONNECTION_CLOSED' });
      expect(connections).toBe(2);
    } finally {
      await sql.end();
      server.close();
    }
  });
});

test('a certificate that nobody vouches for is refused with sslmode=verify-full alone', async () => {
  const server = createServer(relayEncrypted);
  const hosts = `127.0.0.1:${await listening(server)}`;
  const strict = open(hosts, '?sslmode=verify-full');
  await expect(strict`select 3`).rejects.toThrow('self-signed certificate in certificate chain');
  await strict.end({ timeout: 0 });
  const trusting = open(hosts, '?sslmode=require');
  expect(await trusting`select 3 as n`).toEqual([{ n: 3 }]);
  await trusting.end({ timeout: 0 });
  server.close();
});
