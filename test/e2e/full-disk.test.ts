/**
 * Tenants that fill the disk: their writes are turned off before Catnap itself runs out of room, the one that goes on
 * all the same is stopped, and on a disk without a free byte things can still be deleted, which mends it.
 */
import { spawnSync } from 'node:child_process';
import { rm, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ballastFile, ballastHeld, lowMark } from '../../src/compute/local/host/home/room.ts';
import { runProgram } from '../../src/lib/run-program.ts';
import { eventually } from '../helpers/eventually.ts';
import { type LoopDisk, makeLoopDisk, whyNoLoopDisk } from '../helpers/loop-disk.ts';
import { Program } from '../helpers/program.ts';
import { ask } from '../helpers/query.ts';

const mebibyte = 1024 ** 2;
const patience = { deadlineMs: 150_000 };
/** About 8 MB that no compression makes smaller. */
const moreRows = `insert into big select (select string_agg(md5(random()::text || g || i), '') from generate_series(1, 60) i)
  from generate_series(1, 4000) g`;
const problem = await whyNoLoopDisk('ext4');

interface Made {
  readonly projectId: string;
  readonly endpointId: string;
  readonly uri: string;
}

describe.skipIf(problem !== null)('a disk that fills up', () => {
  let disk: LoopDisk;
  let program: Program;
  let filler: Made;
  let neighbour: Made;
  /** What the API answered to each of the changes that were asked for all the time. */
  const statuses = new Map<number, number>();
  const asking = new AbortController();
  let asked: Promise<void>;

  beforeAll(async () => {
    disk = await makeLoopDisk('ext4', 1_300 * mebibyte);
    program = await Program.create({ CATNAP_LOG_LEVEL: 'info' }, { under: disk.path });
    await program.start();
    filler = await makeProject('filler');
    neighbour = await makeProject('neighbour');
    await ask(filler.uri, 'create table big (x text)');
    await ask(neighbour.uri, 'create table small as select generate_series(1, 1000) as n');
    await eventually(() => expect(ballastHeld({ home: program.home.path })).toBeGreaterThan(40 * mebibyte), patience);
    await takeAllBut(400 * mebibyte, 'taken');
    asked = askAllTheTime();
  });
  afterAll(async () => {
    asking.abort();
    await asked;
    await program.destroy();
    await disk.remove();
  });

  async function makeProject(name: string): Promise<Made> {
    const { body } = await program.api('POST', '/projects', { project: { name } });
    const [endpoint] = body.endpoints;
    await program.settle(body.project.id);
    return { projectId: body.project.id, endpointId: endpoint.id, uri: body.connection_uris[0].connection_uri };
  }

  async function askAllTheTime(): Promise<void> {
    for (let turn = 0; !asking.signal.aborted; turn++) {
      const body = { project: { name: `neighbour ${turn}` } };
      const status = await program.api('PATCH', `/projects/${neighbour.projectId}`, body).then(
        (reply) => reply.status,
        () => 0,
      );
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
  }

  const endpointOf = async ({ projectId, endpointId }: Made) =>
    (await program.api('GET', `/projects/${projectId}/endpoints/${endpointId}`)).body.endpoint;

  async function freeBytes(): Promise<number> {
    const { bsize, bavail } = await statfs(disk.path);
    return bsize * bavail;
  }

  /** So that it takes seconds to fill the rest. */
  async function takeAllBut(bytes: number, name: string): Promise<void> {
    const length = Math.floor((await freeBytes()) - bytes);
    if (length > 0) await runProgram('fallocate', ['-l', String(length), join(disk.path, name)]);
  }

  /** Writes until it is refused, in sessions that begin with `greeting`; resolves with the code. */
  async function fill(greeting: string, until: (code: string) => boolean): Promise<string> {
    for (;;) {
      const client = new pg.Client({ connectionString: filler.uri });
      client.on('error', () => {});
      try {
        await client.connect();
        await client.query(greeting);
        for (;;) await client.query(moreRows);
      } catch (error) {
        const code = (error as { code?: string }).code ?? '';
        if (until(code)) return code;
      } finally {
        await client.end().catch(() => undefined);
      }
    }
  }

  it('turns writes off before it is full, and leaves reading and deleting possible', { timeout: 300_000 }, async () => {
    expect(await fill('select 1', (code) => code === '25006')).toBe('25006');
    expect(await freeBytes()).toBeGreaterThan(0);
    await eventually(async () => {
      expect((await endpointOf(filler)).writes_off).toMatchObject({ reason: 'disk_full', enforcement: 'session' });
      await expect(ask(neighbour.uri, 'insert into small values (0)')).rejects.toMatchObject({ code: '25006' });
    }, patience);
    expect(await ask(neighbour.uri, 'select count(*) from small')).toBe('1000');
    const client = new pg.Client({ connectionString: neighbour.uri });
    await client.connect();
    await client.query('begin read write');
    expect((await client.query('delete from small where n > 999')).rowCount).toBe(1);
    await client.query('commit');
    await client.end();
  });

  it('stops a compute whose sessions go on writing, and says 53100 to its clients', { timeout: 300_000 }, async () => {
    expect(await fill('set default_transaction_read_only = off', (code) => code === '53100')).toBe('53100');
    await eventually(async () => {
      await expect(ask(filler.uri, 'select 1')).rejects.toMatchObject({
        code: '53100',
        message: expect.stringContaining('stays suspended until there is room'),
      });
      const started = await program.api('POST', `/projects/${filler.projectId}/endpoints/${filler.endpointId}/start`);
      expect(started).toMatchObject({ status: 507, body: { message: expect.stringContaining('disk') } });
    }, patience);
  });

  it('stops one that fills the disk with its log alone, from transactions that are read-only', {
    timeout: 300_000,
  }, async () => {
    const client = new pg.Client({ connectionString: neighbour.uri });
    client.on('error', () => {});
    await client.connect();
    const flood = `select pg_logical_emit_message(false, 'x', repeat('x', 1000000)) from generate_series(1, 2)`;
    await eventually(
      async () => {
        await client.query(flood).catch(() => undefined);
        await expect(ask(neighbour.uri, 'select 1')).rejects.toMatchObject({ code: '53100' });
      },
      { ...patience, everyMs: 10 },
    );
    await client.end().catch(() => undefined);
  });

  it('deletes and purges without a free byte, after which everybody may write', { timeout: 300_000 }, async () => {
    // On a busy machine what was before may have cost the ballast: with room it is taken back.
    await rm(join(disk.path, 'taken'));
    await eventually(() => expect(ballastHeld({ home: program.home.path })).toBeGreaterThan(40 * mebibyte), patience);
    const most = Math.floor((await freeBytes()) - 2 * mebibyte);
    const fillUp = `fallocate -l ${most} most; cat /dev/zero > junk`;
    // While the parent stands still: who goes on until the ballast is given up takes that as well.
    process.kill(program.pid, 'SIGSTOP');
    const { stderr } = spawnSync('sh', ['-c', fillUp], { cwd: disk.path, encoding: 'utf8' });
    process.kill(program.pid, 'SIGCONT');
    expect(stderr).toContain('No space left');
    await eventually(async () => {
      expect((await program.api('DELETE', `/projects/${filler.projectId}`)).status).toBe(200);
    }, patience);
    expect((await program.api('POST', `/projects/${filler.projectId}/purge`)).status).toBe(200);
    await eventually(async () => {
      expect(await ask(neighbour.uri, 'insert into small values (0) returning n')).toBe('0');
      const { bsize, blocks } = await statfs(disk.path);
      expect(await freeBytes()).toBeGreaterThan(lowMark(bsize * blocks));
      expect(ballastHeld({ home: program.home.path }), ballastFile({ home: program.home.path })).toBeGreaterThan(
        40 * mebibyte,
      );
      expect((await endpointOf(neighbour)).writes_off).toBeUndefined();
    }, patience);
  });

  it('never made the API fail in any other way than 507', () => {
    expect([...statuses.keys()].filter((status) => ![200, 507].includes(status))).toEqual([]);
    expect(statuses.get(200)).toBeGreaterThan(10);
    expect(program.output).not.toContain('the system database ended by itself');
  });
});
