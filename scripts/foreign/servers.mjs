/**
 * The three servers that a foreign suite runs against: a plain one of the same build, and a compute of a temporary
 * Catnap by its direct and its pooled host. All take the same role with the same rights, and none needs to be told
 * which endpoint is meant: a door in front of each compute adds that to the startup packet, and ends TLS itself. Without
 * a door, and with TLS under a certificate of the same authority, they are at the address in `tls`.
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  copyFileSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
} from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { TLSSocket } from 'node:tls';
import { fileURLToPath } from 'node:url';
import postgres from 'postgres';

const entry = fileURLToPath(new URL('../../dist/bin.js', import.meta.url));
/** Postgres refuses to run as root; this is `nobody`. */
const plainUid = process.getuid?.() === 0 ? 65_534 : undefined;
const startMsMax = 300_000;
/** The suites can be run on either runtime of the proxy. */
const proxyRuntime = process.env.CATNAP_PROXY_RUNTIME;

/** Resolves with the servers by name, and `close`, which leaves nothing behind. */
export async function startServers() {
  const cleanups = [];
  const close = async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  };
  try {
    const catnap = await startCatnap(cleanups);
    const servers = { control: await startPlain(catnap, cleanups) };
    for (const kind of ['direct', 'pooled']) servers[kind] = await openCompute(catnap, kind === 'pooled', cleanups);
    for (const [kind, server] of Object.entries(servers)) server.kind = kind;
    return { servers, close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function startCatnap(cleanups) {
  const home = mkdtempSync(join(tmpdir(), 'catnap-suites-'));
  const [httpPort, pgPort] = [await freePort(), await freePort()];
  const child = spawn(process.execPath, [entry, 'up'], {
    env: {
      PATH: process.env.PATH,
      HOME: home,
      CATNAP_HOME: home,
      CATNAP_HTTP_PORT: String(httpPort),
      CATNAP_PG_PORT: String(pgPort),
      CATNAP_LOG_LEVEL: 'warn',
      ...(proxyRuntime && { CATNAP_PROXY_RUNTIME: proxyRuntime }),
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  cleanups.push(async () => {
    child.kill('SIGINT');
    if (child.exitCode === null) await once(child, 'exit');
    // Servers outlive Catnap on purpose.
    await until(() => {
      const left = serversOf(home);
      for (const pid of left) endProcess(pid);
      return left.length === 0;
    });
    // As root, each compute has a disk of its own for temporary files.
    const mounts = readFileSync('/proc/mounts', 'utf8').split('\n');
    for (const [, path] of mounts.map((line) => line.split(' '))) {
      if (path?.startsWith(`${home}/`)) execFileSync('umount', [path]);
    }
    rmSync(home, { recursive: true, force: true });
  });
  let output = '';
  child.stdout.on('data', (chunk) => {
    output += chunk;
  });
  await until(() => {
    if (child.exitCode !== null) throw new Error(`catnap ended:\n${output}`);
    return output.includes('Create a project');
  });
  const key = readFileSync(join(home, 'api-key'), 'utf8').trim();
  return { httpPort, pgPort, key, bin: findBin(home), certificates: join(home, 'certificates') };
}

/** The folder of `initdb` and `postgres` of the major that the suites are for. Others may still be unpacked. */
function findBin(home) {
  const builds = join(home, 'builds/17');
  const [found] = readdirSync(builds, { recursive: true }).filter((path) => path.endsWith('bin/initdb'));
  return join(builds, found, '..');
}

function endProcess(pid) {
  try {
    process.kill(pid, 'SIGQUIT');
  } catch {
    // Its parent was faster.
  }
}

/** The processes that run from the binaries of a home. */
function serversOf(home) {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        return readlinkSync(`/proc/${pid}/exe`).startsWith(`${home}/`);
      } catch {
        return false;
      }
    })
    .map(Number);
}

async function startPlain({ bin, certificates }, cleanups) {
  const directory = mkdtempSync(join(tmpdir(), 'catnap-plain-'));
  if (plainUid !== undefined) chownSync(directory, plainUid, plainUid);
  const data = join(directory, 'data');
  const as = { uid: plainUid, gid: plainUid, stdio: 'ignore', env: { PATH: process.env.PATH, TZ: 'UTC' } };
  const superuser = 'root_of_tests';
  const authentication = ['--auth-local=trust', '--auth-host=scram-sha-256'];
  const locale = ['-E', 'UTF8', '--locale=C'];
  execFileSync(join(bin, 'initdb'), ['-D', data, '-U', superuser, ...authentication, ...locale], as);
  const port = await freePort();
  const pem = join(directory, 'server.pem');
  copyFileSync(join(certificates, 'server.pem'), pem);
  chmodSync(pem, 0o600);
  if (plainUid !== undefined) chownSync(pem, plainUid, plainUid);
  const settings = {
    port,
    unix_socket_directories: directory,
    listen_addresses: '127.0.0.1',
    fsync: 'off',
    ssl: 'on',
    ssl_cert_file: pem,
    ssl_key_file: pem,
    // As in a compute, where pg_stat_statements is loaded; EXPLAIN VERBOSE shows it.
    compute_query_id: 'on',
  };
  const args = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const child = spawn(join(bin, 'postgres'), ['-D', data, ...args], as);
  cleanups.push(async () => {
    child.kill('SIGQUIT');
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    rmSync(directory, { recursive: true, force: true });
  });
  const server = { host: '127.0.0.1', port, user: 'neondb_owner', password: 'owner', database: 'neondb' };
  server.tls = { port, authority: join(certificates, 'ca/ca.crt'), options: '' };
  const path = join(directory, `.s.PGSQL.${port}`);
  const sql = postgres({ path, user: superuser, database: 'postgres', max: 1 });
  await until(async () => (await sql`select 1`.catch(() => [])).length === 1);
  await sql.unsafe(`create role ${server.user} login createdb createrole password '${server.password}'`);
  await sql.unsafe(`create database ${server.database} owner ${server.user}`);
  await sql.end();
  return server;
}

async function openCompute({ httpPort, pgPort, key, certificates }, isPooled, cleanups) {
  const reply = await fetch(`http://127.0.0.1:${httpPort}/api/v2/projects`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ project: { name: isPooled ? 'pooled' : 'direct', pg_version: 17 } }),
  });
  const made = await reply.json();
  if (!reply.ok) throw new Error(JSON.stringify(made));
  const [{ id }] = made.endpoints;
  const [{ connection_parameters: login }] = made.connection_uris;
  const endpoint = isPooled ? `${id}-pooler` : id;
  const port = await openDoor(pgPort, endpoint, certificates, cleanups);
  const { role: user, password, database } = login;
  const server = { host: '127.0.0.1', port, user, password, database };
  server.tls = { port: pgPort, authority: join(certificates, 'ca/ca.crt'), options: `endpoint=${endpoint}` };
  await until(async () => {
    const sql = postgres({ host: server.host, port, user, password, database, max: 1, connect_timeout: 20 });
    const rows = await sql`select 1`.catch(() => []);
    await sql.end({ timeout: 1 });
    return rows.length === 1;
  });
  return server;
}

/** How a client begins that asks for TLS without a question before. */
const tlsHandshake = 22;
const codes = { cancel: 80_877_102, ssl: 80_877_103, gssenc: 80_877_104 };

/** Adds the endpoint to each startup packet and passes on everything else; it ends TLS, where a client asks for it. */
async function openDoor(pgPort, endpoint, certificates, cleanups) {
  const pem = readFileSync(join(certificates, 'server.pem'));
  const sockets = new Set();
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    const inner = connect({ port: pgPort, host: '127.0.0.1', allowHalfOpen: true, noDelay: true });
    for (const socket of [client, inner]) {
      sockets.add(socket);
      socket.on('close', () => sockets.delete(socket));
    }
    client.on('error', () => inner.resetAndDestroy());
    inner.on('error', () => client.destroy());
    const welcome = (stream) => {
      stream.on('error', () => inner.resetAndDestroy());
      let head = Buffer.alloc(0);
      const secure = (rest) => {
        client.off('data', onData);
        client.pause();
        if (rest.length > 0) client.unshift(rest);
        welcome(new TLSSocket(client, { isServer: true, cert: pem, key: pem, ALPNProtocols: ['postgresql'] }));
      };
      const onData = (chunk) => {
        head = Buffer.concat([head, chunk]);
        if (head[0] === tlsHandshake && stream === client) return secure(head);
        while (head.length >= 8 && head.length >= head.readUInt32BE(0)) {
          const code = head.readUInt32BE(4);
          if (code === codes.ssl && stream === client) {
            client.write('S');
            return secure(head.subarray(8));
          }
          if (code !== codes.ssl && code !== codes.gssenc) break;
          stream.write('N');
          head = head.subarray(8);
        }
        const isWhole = head.length >= 8 && head.length >= head.readUInt32BE(0);
        if (!isWhole && head.length > 0 && (head.length < 4 || head.readUInt32BE(0) < 10_000)) return;
        if (head.length === 0) return;
        stream.off('data', onData);
        inner.write(isWhole && head.readUInt32BE(4) !== codes.cancel ? withEndpoint(head, endpoint) : head);
        stream.pipe(inner);
        inner.pipe(stream);
      };
      stream.on('data', onData);
      stream.on('end', () => inner.end());
    };
    welcome(client);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanups.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return server.address().port;
}

function withEndpoint(packet, endpoint) {
  const length = packet.readUInt32BE(0);
  const words = packet.toString('latin1', 8, length - 1).split('\0');
  const parameters = new Map();
  for (let at = 0; at + 1 < words.length; at += 2) parameters.set(words[at], words[at + 1]);
  parameters.set('options', [parameters.get('options'), `endpoint=${endpoint}`].filter(Boolean).join(' '));
  const body = Buffer.from(`${[...parameters].flat().join('\0')}\0\0`, 'latin1');
  const start = Buffer.alloc(8);
  start.writeUInt32BE(8 + body.length, 0);
  packet.copy(start, 4, 4, 8);
  return Buffer.concat([start, body, packet.subarray(length)]);
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

async function until(isDone) {
  const giveUpAt = Date.now() + startMsMax;
  while (!(await isDone())) {
    if (Date.now() > giveUpAt) throw new Error(`waited in vain: ${isDone}`);
    await delay(200);
  }
}
