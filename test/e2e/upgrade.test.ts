/**
 * Another Catnap takes over a data home with computes awake and clients that write. Without a release before this one
 * the program takes over from itself, which is an upgrade without migrations.
 */
import { execFile } from 'node:child_process';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually, thinkTime } from '../helpers/eventually.ts';
import { Program } from '../helpers/program.ts';
import { ask } from '../helpers/query.ts';
import { type BuiltRelease, buildRelease, findReleaseBefore } from '../helpers/release-before.ts';

const newEntry = fileURLToPath(new URL('../../dist/bin.js', import.meta.url));

/** A command of the new program on the home of another one. */
async function catnap(program: Program, ...words: readonly string[]) {
  const env = { ...process.env, ...program.environment };
  const outcome = await promisify(execFile)(process.execPath, [newEntry, ...words], { env }).catch((error) => error);
  return { code: outcome.code ?? 0, out: `${outcome.stdout}${outcome.stderr}` };
}

async function makeProject(program: Program) {
  const { body } = await program.api('POST', '/projects', { project: { name: 'kept' } });
  await program.settle(body.project.id);
  const endpointId: string = body.endpoints[0].id;
  const uri: string = body.connection_uris[0].connection_uri;
  await ask(uri, 'create table written (client int, n int, primary key (client, n))');
  return { endpointId, uri, pooledUri: uri.replace(endpointId, `${endpointId}-pooler`) };
}

/**
 * Applications with a pool of connections to the pooled host. What was answered counts as written; a statement that
 * failed is sent again, as the same row, so that one that was carried out in spite of its failure is found out.
 */
function startWriting(connectionString: string, count: number) {
  const failures: string[] = [];
  const written = Array.from({ length: count }, () => 0);
  let isStopped = false;
  const loops = written.map(async (_, client) => {
    const pool = new pg.Pool({ connectionString, max: 2 });
    pool.on('error', () => {});
    while (!isStopped) {
      try {
        await pool.query('insert into written values ($1, $2)', [client, written[client]]);
        written[client] = (written[client] ?? 0) + 1;
      } catch (error) {
        failures.push(String((error as { code?: string }).code ?? error));
      }
      await thinkTime(5);
    }
    await pool.end();
  });
  return {
    written,
    failures,
    /** Until each has written this many more. */
    untilMore: async (more: number) => {
      const before = [...written];
      await eventually(() =>
        expect(
          written.every((n, client) => n >= (before[client] ?? 0) + more),
          failures.join(' '),
        ).toBe(true),
      );
    },
    stop: async () => {
      isStopped = true;
      await Promise.all(loops);
    },
  };
}

const rowsOf = async (uri: string) => Number(await ask(uri, 'select count(*) from written'));
const sum = (numbers: readonly number[]) => numbers.reduce((total, n) => total + n, 0);

describe('ports that a service manager keeps', () => {
  let program: Program;
  beforeAll(async () => {
    program = await Program.create({}, { passesPorts: true });
    await program.start();
  });
  afterAll(() => program.destroy());

  test('make clients of the pooled host wait while Catnap is replaced; none is refused, and no statement is lost', async () => {
    const { endpointId, uri, pooledUri } = await makeProject(program);
    const servers = await program.serverPids(endpointId);
    expect(servers.length).toBeGreaterThan(0);
    const writing = startWriting(pooledUri, 4);
    await writing.untilMore(20);
    expect(await program.stop('SIGTERM')).toBe(0);
    await program.start();
    await writing.untilMore(20);
    await writing.stop();
    expect(await program.serverPids(endpointId)).toEqual(servers);
    // A statement that crosses the notice that its connection ends was not carried out.
    expect(writing.failures.filter((code) => code !== '57P01')).toEqual([]);
    expect(await rowsOf(uri)).toBe(sum(writing.written));
  });

  test('do not get to tenants’ servers', async () => {
    const [api = 0] = await program.processPids('api');
    const inodes = await listeningInodes([program.httpPort, program.pgPort]);
    expect(inodes).toHaveLength(2);
    const holds = async (pid: number) => (await socketsOf(pid)).filter((inode) => inodes.includes(inode)).length;
    expect(await holds(api)).toBe(1);
    for (const pid of await program.serverPids()) expect(await holds(pid)).toBe(0);
  });

  test('must be those of the settings', async () => {
    await program.stop();
    const other = { CATNAP_HTTP_PORT: '7' };
    await expect(program.start([], other)).rejects.toThrow(
      new RegExp(
        `passes a socket on port ${program.httpPort}: allowed are CATNAP_HTTP_PORT \\(7\\) and CATNAP_PG_PORT`,
      ),
    );
  });

  test('the home says which program has used it, and an older one refuses it before it touches anything', async () => {
    const path = join(program.home.path, 'release.json');
    const record = JSON.parse(await readFile(path, 'utf8'));
    expect(record).toMatchObject({ version: expect.stringMatching(/^\d/), schemas: { platform: expect.any(Number) } });
    const schemas = { ...record.schemas, platform: record.schemas.platform + 1 };
    await writeFile(path, JSON.stringify({ ...record, version: '99.0.0', commit: 'abc', schemas }));
    const sentence =
      /was last used by Catnap 99\.0\.0 \(abc\), which is newer than this Catnap \d.*: start the newer one/;
    await expect(program.start()).rejects.toThrow(sentence);
    expect(await program.serverPids('system')).toEqual([]);
    expect(await catnap(program, 'upgrade', 'undo', '--yes')).toMatchObject({
      code: 1,
      out: expect.stringMatching(sentence),
    });
    const checked = await catnap(program, 'upgrade', 'check');
    expect(checked).toMatchObject({
      code: 1,
      out: expect.stringMatching(/fail +system database +has platform schema/),
    });
    await writeFile(path, JSON.stringify(record));
    expect(await catnap(program, 'upgrade', 'check')).toMatchObject({
      code: 0,
      out: expect.stringMatching(/ok +system database +has the schema of this program/),
    });
    const nothing = await catnap(program, 'upgrade', 'undo', '--yes');
    expect(nothing).toMatchObject({ code: 1, out: expect.stringContaining('there is nothing to undo') });
  });

  test('an upgrade is undone while Catnap is stopped, and can be made again', async () => {
    const path = join(program.home.path, 'release.json');
    const record = JSON.parse(await readFile(path, 'utf8'));
    const earlier = [{ version: '0.0.9', commit: null, schemas: { ...record.schemas, platform: 23 } }];
    await writeFile(path, JSON.stringify({ ...record, earlier }));
    const unknown = await catnap(program, 'upgrade', 'undo', '--yes', '--to', '0.0.1');
    expect(unknown).toMatchObject({ code: 1, out: expect.stringContaining('there were: 0.0.9') });
    expect(await catnap(program, 'upgrade', 'undo', '--yes')).toMatchObject({
      code: 0,
      out: expect.stringMatching(/Catnap 0\.0\.9\nUndone: .*0025-webhooks\.sql, 0024-key-scopes\.sql\nInstall/),
    });
    expect(JSON.parse(await readFile(path, 'utf8'))).toMatchObject({ ...earlier[0], earlier: [] });
    expect((await catnap(program, 'upgrade', 'check')).out).toMatch(
      /ok +system database +\d+ migrations will be applied/,
    );
    await program.start();
    expect((await program.api('GET', '/projects')).body.projects).toHaveLength(1);
    expect(JSON.parse(await readFile(path, 'utf8'))).toMatchObject({ schemas: record.schemas, earlier });
    const running = await catnap(program, 'upgrade', 'undo', '--yes');
    expect(running).toMatchObject({ code: 1, out: expect.stringContaining('another Catnap is running') });
  });
});

/** The kernel's numbers of the sockets that listen on these ports. */
async function listeningInodes(ports: readonly number[]): Promise<string[]> {
  const lines = (await readFile('/proc/net/tcp', 'utf8')).split('\n').map((line) => line.trim().split(/\s+/));
  return lines.flatMap(([, address = '', , state, , , , , , inode = '']) =>
    state === '0A' && ports.includes(Number.parseInt(address.split(':')[1] ?? '', 16)) ? [inode] : [],
  );
}

async function socketsOf(pid: number): Promise<string[]> {
  const { stdout } = await promisify(execFile)('ls', ['-l', `/proc/${pid}/fd`]);
  return [...stdout.matchAll(/socket:\[(\d+)\]/g)].map((match) => match[1] ?? '');
}

const before = findReleaseBefore();
const title = before === undefined ? 'the release before: skipped, because no release is tagged' : `from ${before}`;

describe.skipIf(before === undefined)(title, () => {
  let release: BuiltRelease;
  let program: Program;
  beforeAll(async () => {
    release = buildRelease(before ?? '');
    // In the moments when neither program runs, another process must not take the ports.
    program = await Program.create({}, { entry: release.entry, ownBuilds: true, passesPorts: true });
    await program.start();
  });
  afterAll(async () => {
    await program?.destroy();
    await rm(release.folder, { recursive: true, force: true });
  });

  test('computes stay awake, nothing is lost, the older program is refused, and the way back works', async () => {
    const { endpointId, uri, pooledUri } = await makeProject(program);
    const servers = await program.serverPids(endpointId);
    const writing = startWriting(pooledUri, 4);
    await writing.untilMore(20);

    const checked = await catnap(program, 'upgrade', 'check');
    expect(checked).toMatchObject({
      code: 0,
      out: expect.stringMatching(/system database +(\d+ migrations|migration \d|has the)/),
    });

    await program.stop('SIGTERM');
    expect(await listeningInodes([program.httpPort, program.pgPort])).toHaveLength(2);
    await program.start([], {}, newEntry);
    await writing.untilMore(20);
    expect(await program.serverPids(endpointId)).toEqual(servers);
    expect(await catnap(program, 'upgrade', 'undo', '--yes')).toMatchObject({
      code: 1,
      out: expect.stringContaining('another Catnap is running'),
    });

    await program.stop('SIGTERM');
    const isOtherSchema = !checked.out.includes('has the schema of this program');
    if (isOtherSchema) await expect(program.start()).rejects.toThrow(/start the newer/);
    expect(await catnap(program, 'upgrade', 'undo', '--yes')).toMatchObject({ code: 0 });
    await program.start();
    await writing.untilMore(20);
    expect(await program.serverPids(endpointId)).toEqual(servers);

    await program.stop('SIGTERM');
    await program.start([], {}, newEntry);
    await writing.untilMore(20);
    await writing.stop();
    expect(await program.serverPids(endpointId)).toEqual(servers);
    expect(await rowsOf(uri)).toBe(sum(writing.written));
  });
});
