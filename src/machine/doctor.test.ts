import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { connect, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest';
import { startHttpStub } from '../../test/helpers/http-stub.ts';
import { readConfig } from '../lib/config.ts';
import { runChecks } from './doctor/doctor.ts';
import { checkFreeDisk, checkHome, checkReflinks, checkTemporaryDisk, judgeFreeDisk } from './doctor/home.ts';
import {
  checkCgroups,
  checkLibc,
  checkNode,
  checkOpenFiles,
  checkSharedMemory,
  checkUids,
  isMapped,
} from './doctor/machine.ts';
import { checkPorts } from './doctor/ports.ts';
import { checkBinaries, checkPsql, checkSystemDatabase } from './doctor/postgres.ts';
import { findRunning } from './doctor/running.ts';
import { checkSettings } from './doctor/settings.ts';

const isRoot = process.getuid?.() === 0;
let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cn-doctor-'));
  await chmod(folder, 0o711);
});

afterEach(() => rm(folder, { recursive: true }));

function portOf(server: Server): number {
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

const placeOf = ({ url }: { readonly url: string }) => ({
  bind: '127.0.0.1',
  httpPort: Number(new URL(url).port),
  home: folder,
  apiKey: undefined,
});

async function file(name: string, text: string): Promise<string> {
  await writeFile(join(folder, name), text);
  return join(folder, name);
}

test('all looks together find a usable machine and leave nothing behind', async () => {
  const home = join(folder, 'home');
  const checks = await runChecks(readConfig({ CATNAP_HOME: home }));
  expect(checks.filter((check) => check.status === 'fail' && !check.name.endsWith('port'))).toEqual([]);
  const names = checks.map((check) => check.name);
  expect(names).toEqual(
    expect.arrayContaining(['Node', 'Postgres 17', 'Postgres 18', 'data home', 'settings', 'HTTP port', 'psql']),
  );
  for (const check of checks) expect(check.status === 'ok', check.name).toBe(check.advice === undefined);
  expect(await readdir(folder)).toEqual([]);
});

test('a variable that is nearly a setting is found', () => {
  expect(checkSettings(readConfig({ CATNAP_HOMR: '/' }))).toMatchObject({
    status: 'warn',
    detail: 'CATNAP_HOMR is set, but no setting has that name: is CATNAP_HOME meant?',
  });
});

describe('the machine', () => {
  test('needs a Node that is new enough', () => {
    expect(checkNode('20.19.0').status).toBe('ok');
    expect(checkNode('22.1.0').status).toBe('ok');
    expect(checkNode('20.18.9').status).toBe('fail');
    expect(checkNode('18.20.0').status).toBe('fail');
  });

  test.runIf(process.platform === 'linux')('needs glibc', async () => {
    expect((await checkLibc()).status).toBe('ok');
    expect((await checkLibc(await file('maps', '7f00-7f01 r-xp /lib/ld-musl-x86_64.so.1\n'))).status).toBe('fail');
  });

  test('needs the uids to exist, as root', async () => {
    const { uids } = readConfig({ CATNAP_UID_BASE: '5000' }, { isRoot: true });
    expect((await checkUids(uids, await file('all', '         0          0 4294967295\n'))).status).toBe('ok');
    expect((await checkUids(uids, await file('few', '0 100000 65536\n'))).status).toBe('ok');
    expect((await checkUids(uids, await file('less', '0 100000 6000\n'))).status).toBe('fail');
    expect((await checkUids(null)).status).toBe('warn');
    expect(isMapped('0 0 1\n1 100000 65536\n', 1, 65_536)).toBe(true);
    expect(isMapped('0 0 1\n1 100000 65536\n', 0, 1)).toBe(false);
  });

  test('says whether sizes can be enforced, by entering a group', async () => {
    const config = { home: folder, uids: isRoot ? readConfig({}, { isRoot: true }).uids : null };
    const found = await checkCgroups(config, null);
    expect(found.name).toBe('cgroups');
    if (found.status === 'ok') expect(found.detail).toBe('sizes of computes are enforced');
    else expect(found.advice).toMatch(/not enforced/);
    const unmapped = { service: 1, systemDatabase: 2, firstTenant: -1 };
    expect((await checkCgroups({ home: folder, uids: unmapped }, null)).status).toBe('warn');
  });

  test('asks the Catnap that runs whether it enforces sizes, whatever this shell may do', async () => {
    const config = { home: folder, uids: isRoot ? readConfig({}, { isRoot: true }).uids : null };
    const unmapped = { home: folder, uids: { service: 1, systemDatabase: 2, firstTenant: -1 } };
    const stub = await startHttpStub(() => ({ body: { name: 'catnap', limits_enforced: true } }));
    try {
      const running = await findRunning(placeOf(stub));
      expect((await checkCgroups(unmapped, running)).status).toBe('ok');
      expect((await checkCgroups(config, { pgPort: null, limitsEnforced: false })).status).toBe('warn');
    } finally {
      await stub.close();
    }
  });

  test('has shared memory and enough open files, or is told', async () => {
    expect((await checkSharedMemory(join(folder, 'none'))).status).toBe('warn');
    const limits = (soft: string) => file('limits', `Max open files            ${soft}   524288   files\n`);
    expect((await checkOpenFiles(await limits('1024'))).status).toBe('warn');
    expect((await checkOpenFiles(await limits('65536'))).status).toBe('ok');
    expect((await checkOpenFiles(await limits('unlimited'))).status).toBe('ok');
  });
});

describe('the data home', () => {
  const uids = isRoot ? readConfig({}, { isRoot: true }).uids : null;

  test('may be there or not yet', async () => {
    expect(await checkHome({ home: folder, uids })).toMatchObject({ status: 'ok', detail: `${folder}, mode 711` });
    const later = join(folder, 'a', 'b');
    expect(await checkHome({ home: later, uids })).toMatchObject({ status: 'ok', detail: `${later} will be made` });
  });

  test('must be a directory of ours', async () => {
    expect((await checkHome({ home: await file('file', ''), uids })).status).toBe('fail');
    if (!isRoot) expect((await checkHome({ home: '/', uids })).detail).toContain('belongs to uid 0');
    if (!isRoot) expect((await checkHome({ home: '/catnap-home', uids })).detail).toContain('cannot be made');
  });

  test('must let the servers’ uids pass, as root', async () => {
    const asRoot = readConfig({}, { isRoot: true }).uids;
    await mkdir(join(folder, 'closed'), { mode: 0o700 });
    const found = await checkHome({ home: join(folder, 'closed', 'home'), uids: asRoot });
    expect(found).toMatchObject({ status: 'fail', advice: expect.stringContaining(`chmod o+x ${folder}/closed`) });
  });

  test('needs room', async () => {
    expect(judgeFreeDisk(100 * 1024 ** 3).status).toBe('ok');
    expect(judgeFreeDisk(2 * 1024 ** 3).status).toBe('warn');
    expect(judgeFreeDisk(1024 ** 2).status).toBe('fail');
    expect((await checkFreeDisk(join(folder, 'not', 'yet'))).detail).toMatch(/GiB$/);
  });

  test('is tried for reflinks without a trace', async () => {
    expect(['ok', 'warn']).toContain((await checkReflinks(join(folder, 'not', 'yet'))).status);
    expect(await readdir(folder)).toEqual([]);
  });

  test('is tried for disks of temporary files without a trace', async () => {
    const home = join(folder, 'not', 'yet');
    expect(await checkTemporaryDisk({ home, uids: null })).toMatchObject({ status: 'warn' });
    expect(['ok', 'warn']).toContain((await checkTemporaryDisk(readConfig({ CATNAP_HOME: home }))).status);
    expect(await readdir(folder)).toEqual([]);
  });
});

describe('the ports', () => {
  const open: Server[] = [];

  afterEach(() => {
    for (const server of open.splice(0)) server.close();
  });

  async function takePort(): Promise<number> {
    const server = createServer().listen(0, '127.0.0.1');
    open.push(server);
    await once(server, 'listening');
    return portOf(server);
  }

  const config = (httpPort: number, pgPort: number) => ({
    bind: '127.0.0.1',
    httpPort,
    pgPort,
    pgPortIsExplicit: true,
    home: folder,
    apiKey: undefined,
  });

  test('that others have are found', async () => {
    const port = await takePort();
    const [http, pg] = await checkPorts(config(port, port), null);
    expect(http).toMatchObject({ name: 'HTTP port', status: 'fail', detail: `${port}: taken by another program` });
    expect(pg).toMatchObject({ name: 'database port', status: 'fail' });
  });

  test('that a running Catnap has are its own', async () => {
    const pgPort = await takePort();
    const stub = await startHttpStub(() => ({ body: { name: 'catnap', database_port: pgPort } }));
    try {
      const given = config(Number(new URL(stub.url).port), pgPort);
      const checks = await checkPorts(given, await findRunning(given));
      expect(checks.map((check) => check.status)).toEqual(['ok', 'ok']);
    } finally {
      await stub.close();
    }
  });
});

describe('a Catnap that listens for other machines too', () => {
  const brief = { name: 'catnap' };
  const whole = { name: 'catnap', database_port: 5432, limits_enforced: true };

  test('is asked with the key of the data home', async () => {
    await file('api-key', 'napi_kept\n');
    const stub = await startHttpStub(({ authorization }) => ({
      body: authorization === 'Bearer napi_kept' ? whole : brief,
    }));
    try {
      expect(await findRunning(placeOf(stub))).toEqual({ pgPort: 5432, limitsEnforced: true });
    } finally {
      await stub.close();
    }
  });

  test('has the database port also where no key can be read', async () => {
    const stub = await startHttpStub(() => ({ body: brief }));
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    try {
      const running = await findRunning(placeOf(stub));
      const given = { ...placeOf(stub), pgPort: portOf(server), pgPortIsExplicit: true };
      expect((await checkPorts(given, running)).map((check) => check.status)).toEqual(['ok', 'ok']);
    } finally {
      server.close();
      await stub.close();
    }
  });
});

describe('Postgres', () => {
  test('binaries are run, not only found', async () => {
    expect(await checkBinaries(17, { pgBin: {} })).toMatchObject({
      status: 'ok',
      detail: expect.stringMatching(/^17\.\d+, embedded$/),
    });
    const missing = await checkBinaries(16, { pgBin: { 16: folder } });
    expect(missing).toMatchObject({ status: 'fail', advice: expect.stringContaining('CATNAP_PG_BIN_16') });
  });

  test('psql is a wish, not a need', async () => {
    expect((await checkPsql(join(folder, 'psql'))).status).toBe('warn');
  });

  test('as an external system database must answer', async () => {
    expect((await checkSystemDatabase(undefined)).status).toBe('ok');
    const refused = await checkSystemDatabase('postgres://nobody:x@127.0.0.1:1/none');
    expect(refused).toMatchObject({ status: 'fail', advice: expect.stringContaining('CATNAP_DATABASE_URL') });
    const { path, username, password, database } = inject('systemDatabase');
    const relay = createServer((client) => client.pipe(connect(path)).pipe(client)).listen(0, '127.0.0.1');
    await once(relay, 'listening');
    const port = portOf(relay);
    const reached = await checkSystemDatabase(`postgres://${username}:${password}@127.0.0.1:${port}/${database}`);
    relay.close();
    expect(reached).toMatchObject({ status: 'ok', detail: expect.stringMatching(/^external, Postgres 17/) });
  });
});
