/** Certificates that change while clients connect, as TLS clients see them, with channel binding. */
import { execFile } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect as connectTcp } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { eventually } from '../../test/helpers/eventually.ts';
import { PostgresProxies } from '../../test/helpers/proxy.ts';
import { isInstalled } from '../../test/helpers/tools.ts';
import { ensureCertificates } from '../lib/certificates.ts';
import { systemClock } from '../lib/clock.ts';
import { createLogger } from '../lib/log.ts';
import { type CertificateSource, startCertificateSource } from './certificate-source.ts';

const run = promisify(execFile);
const log = createLogger({ level: 'silent', process: 'test' });
const proxies = new PostgresProxies();
const { system } = proxies;
const names = { domain: 'localhost', region: 'local' };
let directory: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'catnap-certificates-'));
  await proxies.prepare();
});
afterAll(async () => {
  await proxies.dispose();
  await rm(directory, { recursive: true, force: true });
});
afterEach(() => proxies.cleanUp());

async function serve(source: CertificateSource): Promise<number> {
  proxies.onCleanup(() => source.stop());
  return (await proxies.start({}, { tls: () => source.current() })).port;
}

async function handshake(port: number, options: object = {}): Promise<TLSSocket> {
  const socket = connectTcp(port, '127.0.0.1');
  socket.on('error', () => {});
  socket.write(Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]));
  await once(socket, 'data');
  const secured = connectTls({ socket, servername: 'ep-a.local.localhost', rejectUnauthorized: false, ...options });
  proxies.onCleanup(() => secured.destroy());
  await once(secured, 'secureConnect');
  return secured;
}

async function shown(port: number): Promise<string> {
  return (await handshake(port)).getPeerX509Certificate()?.fingerprint256 ?? '';
}

const fingerprint = (cert: string) => new X509Certificate(cert).fingerprint256;

async function expectChannelBinding(port: number): Promise<void> {
  if (!isInstalled('psql')) return;
  const uri =
    `postgresql://${system.username}@localhost:${port}/${system.database}` +
    '?options=endpoint%3Dep-a&sslmode=require&channel_binding=require';
  const env = { PATH: process.env.PATH ?? '', PGPASSWORD: system.password };
  expect((await run('psql', [uri, '-Atc', 'select 1'], { env })).stdout.trim()).toBe('1');
}

/** An operator's files: made with an authority of their own. */
async function writeFiles(maker: string, files: { cert: string; key: string }): Promise<string> {
  const made = await ensureCertificates({ directory: join(directory, maker), ...names, clock: systemClock });
  await writeFile(files.key, made.key);
  await writeFile(files.cert, made.cert);
  return fingerprint(made.cert);
}

it('its own is renewed before it expires, without a restart', async () => {
  let now = new Date();
  const clock = { now: () => now };
  const config = { ...names, tlsFiles: undefined };
  const source = await startCertificateSource({ config, directory: join(directory, 'own'), clock, log, everyMs: 10 });
  const told: string[] = [];
  source.follow(({ cert }) => told.push(fingerprint(cert)));
  const port = await serve(source);
  const first = await shown(port);
  await expectChannelBinding(port);
  now = new Date(now.getTime() + 380 * 86_400_000);
  await eventually(async () => expect(await shown(port)).not.toBe(first));
  await expectChannelBinding(port);
  expect(told).toEqual([first, await shown(port)]);
});

it('the operator’s own is shown, and read again when the files change; half a change is not', async () => {
  await mkdir(join(directory, 'files'));
  const tlsFiles = { cert: join(directory, 'files', 'tls.crt'), key: join(directory, 'files', 'tls.key') };
  const first = await writeFiles('operator-1', tlsFiles);
  const config = { ...names, tlsFiles };
  const source = await startCertificateSource({ config, directory, clock: systemClock, log, everyMs: 10 });
  const port = await serve(source);
  expect(await shown(port)).toBe(first);
  await expectChannelBinding(port);
  const open = await handshake(port);
  await writeFile(tlsFiles.key, 'half');
  expect(await shown(port)).toBe(first);
  const second = await writeFiles('operator-2', tlsFiles);
  await eventually(async () => expect(await shown(port)).toBe(second));
  await expectChannelBinding(port);
  expect(open.destroyed).toBe(false);
});

it('files that are no pair, or not there, fail the start and are named', async () => {
  await mkdir(join(directory, 'wrong'));
  const tlsFiles = { cert: join(directory, 'wrong', 'tls.crt'), key: join(directory, 'wrong', 'tls.key') };
  const start = () =>
    startCertificateSource({ config: { ...names, tlsFiles }, directory, clock: systemClock, log, everyMs: 10 });
  await expect(start()).rejects.toThrow(/CATNAP_TLS_(CERT|KEY).*can be read/);
  await writeFiles('operator-3', tlsFiles);
  const other = await ensureCertificates({ directory: join(directory, 'operator-4'), ...names, clock: systemClock });
  await writeFile(tlsFiles.key, other.key);
  await expect(start()).rejects.toThrow(/CATNAP_TLS_CERT.*no pair/);
});

it('nothing older than TLS 1.2 is spoken', async () => {
  const config = { ...names, tlsFiles: undefined };
  const own = join(directory, 'versions');
  const port = await serve(await startCertificateSource({ config, directory: own, clock: systemClock, log }));
  for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
    expect((await handshake(port, { minVersion: version, maxVersion: version })).getProtocol()).toBe(version);
  }
  const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' };
  await expect(handshake(port, old)).rejects.toThrow();
});
