/**
 * The drill: an installation under load whose data home is gone. A new one is restored from the store, and holds every
 * row that is older than the store was behind; strings, keys and passwords work as before.
 */
import { execFile, spawn } from 'node:child_process';
import { chmod, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { newBackupKeyLine } from '../../src/backup/seal/backup-key.ts';
import { unmountUnder } from '../../src/compute/local/host/disks/mounts.ts';
import { eventually, thinkTime, usualDeadlineMs } from '../helpers/eventually.ts';
import { forgetKilledServers } from '../helpers/killed-servers.ts';
import { Program } from '../helpers/program.ts';
import { ask } from '../helpers/query.ts';

const run = promisify(execFile);
const entry = fileURLToPath(new URL('../../dist/bin.js', import.meta.url));
let keyLine: string;
let program: Program;
let store: string;
let apiKey: string;
const projects: Written[] = [];

interface HistoryReply {
  readonly project_id: string;
  readonly snapshot_id: string | null;
  readonly stored_until: string | null;
  readonly base_count: number;
  readonly gone_since: string | null;
}

interface Written {
  readonly id: string;
  readonly uri: string;
  /** Numbers that were committed, and when the client knew. */
  readonly acknowledged: { readonly n: number; readonly at: number }[];
}

beforeAll(async () => {
  store = await mkdtemp(join(tmpdir(), 'cn-store-'));
  await chmod(store, 0o777);
  program = await Program.create({ CATNAP_BACKUP_URL: `file://${store}`, CATNAP_BACKUP_DELAY: '2' });
  await program.start();
  apiKey = await program.apiKey();
});
afterAll(async () => {
  await program.destroy();
  await rm(store, { recursive: true, force: true });
});

async function createProject(name: string): Promise<Written> {
  const { status, body } = await program.api('POST', '/projects', { project: { name } });
  expect(status).toBe(201);
  await program.settle(body.project.id);
  return { id: body.project.id, uri: body.connection_uris[0].connection_uri, acknowledged: [] };
}

/** Commits one number after the other until the server is gone. */
async function writeUntilTheEnd({ uri, acknowledged }: Written): Promise<void> {
  const client = new pg.Client({ connectionString: uri });
  client.on('error', () => {});
  await client.connect();
  await client.query('create table written (n int)');
  try {
    for (let n = 1; ; n++) {
      await client.query('insert into written values ($1)', [n]);
      acknowledged.push({ n, at: Date.now() });
      await thinkTime(5);
    }
  } catch {
    // The machine is lost.
  }
}

async function emptyHome(): Promise<void> {
  await forgetKilledServers(program.home.path);
  await unmountUnder(program.home.path);
  for (const name of await readdir(program.home.path)) {
    await rm(join(program.home.path, name), { recursive: true, force: true });
  }
}

const catnap = (args: readonly string[], env: Record<string, string> = {}) =>
  run(process.execPath, [entry, ...args], {
    env: {
      PATH: process.env.PATH ?? '',
      HOME: program.home.path,
      CATNAP_HOME: program.home.path,
      CATNAP_BACKUP_URL: `file://${store}`,
      ...env,
    },
  });

const restore = (...more: string[]) =>
  catnap(['--json', 'restore', '--from', `file://${store}`, ...more], { CATNAP_BACKUP_KEY: keyLine });

/** A branch with a row for each of two snapshots, one taken while it serves and one while it sleeps, then deleted. */
async function takeSnapshots(projectId: string): Promise<string[]> {
  const at = (path: string) => `/projects/${projectId}${path}`;
  const send = async (method: string, path: string, body?: object) => {
    const reply = await program.api(method, at(path), body);
    expect([path, reply.body.message, reply.status < 300]).toEqual([path, undefined, true]);
    await program.settle(projectId);
    return reply.body;
  };
  const {
    branch,
    endpoints,
    connection_uris: uris,
  } = await send('POST', '/branches', {
    branch: { name: 'side' },
    endpoints: [{ type: 'read_write' }],
  });
  const uri = uris[0].connection_uri;
  await ask(uri, "create table kept as select 'awake' as value");
  const awake = await send('POST', `/branches/${branch.id}/snapshot?name=awake`);
  await ask(uri, "insert into kept values ('asleep')");
  await send('POST', `/endpoints/${endpoints[0].id}/suspend`);
  const asleep = await send('POST', `/branches/${branch.id}/snapshot?name=asleep`);
  await send('DELETE', `/branches/${branch.id}?hard_delete=true`);
  return [awake.snapshot.id, asleep.snapshot.id];
}

describe('a lost machine', () => {
  /** By project, the moment up to which the store was known to have everything. */
  const stored = new Map<string, number>();
  const writers: Promise<void>[] = [];
  let snapshots: string[];

  it('has projects, and snapshots of a branch that is deleted', async () => {
    projects.push(await createProject('one'), await createProject('two'));
    snapshots = await takeSnapshots(projects[0]?.id ?? '');
    expect(snapshots).toHaveLength(2);
  });

  it('has its projects, under load, in the store', async () => {
    writers.push(...projects.map(writeUntilTheEnd));
    await eventually(
      async () => {
        expect(projects.every(({ acknowledged }) => acknowledged.length > 100)).toBe(true);
        const { body } = await program.api('GET', '/backup');
        const here = (body.histories as HistoryReply[]).filter((one) => one.gone_since === null);
        const kept = here.filter((one) => one.snapshot_id !== null);
        expect(kept.map((one) => one.base_count)).toEqual([1, 1]);
        expect(kept.map((one) => one.snapshot_id).toSorted()).toEqual(snapshots.toSorted());
        const pasts = here.filter((one) => one.snapshot_id === null);
        expect(pasts, JSON.stringify(body)).toHaveLength(3);
        const begun = Math.max(...projects.map(({ acknowledged }) => acknowledged[50]?.at ?? 0));
        for (const one of pasts) expect(Date.parse(one.stored_until ?? '')).toBeGreaterThan(begun);
        for (const one of pasts) stored.set(one.project_id, Date.parse(one.stored_until ?? ''));
      },
      // The system's own history too, and all of them for the first time.
      { deadlineMs: 2 * usualDeadlineMs, everyMs: 500 },
    );
    keyLine = (await catnap(['backup', 'key'])).stdout.trim();
    expect(keyLine).not.toBe('');
  });

  it('is verified, and then lost', async () => {
    const verified = JSON.parse((await catnap(['--json', 'backup', 'verify', '--all'])).stdout);
    expect(verified).toMatchObject({ isOk: true });
    const rowsOf = new Map<string, number>();
    for (const { branchId, check } of verified.verified) {
      expect(check).toMatchObject({ method: 'amcheck' });
      rowsOf.set(branchId, check.rows);
    }
    for (const id of snapshots) expect(rowsOf.get(id)).toBeGreaterThan(0);
    for (const { id } of projects) {
      const { branches } = (await program.api('GET', `/projects/${id}/branches`)).body;
      expect(rowsOf.get(branches[0].id)).toBeGreaterThan(50);
    }
    expect((await program.api('GET', '/backup')).body).toMatchObject({ verified_ok: true });
    await program.killHard();
    for (const pid of await program.serverPids()) process.kill(pid, 'SIGKILL');
    await Promise.all(writers);
    await eventually(async () => expect(await program.serverPids()).toEqual([]));
  });

  it('is not restored over what is there, nor with a wrong key', async () => {
    await expect(restore()).rejects.toThrow(/is not empty \(it holds/);
    await emptyHome();
    const wrong = catnap(['restore', '--from', `file://${store}`], { CATNAP_BACKUP_KEY: newBackupKeyLine() });
    await expect(wrong).rejects.toThrow(/wrong backup key/);
    await expect(restore('--at', '2020-01-01T00:00:00Z')).rejects.toThrow(/begins at/);
    await rm(join(program.home.path, 'restore.json'), { force: true });
  });

  it('does not start while a restore is not finished', async () => {
    await writeFile(join(program.home.path, 'restore.json'), JSON.stringify({ from: 'file:///x' }));
    await expect(catnap(['up'])).rejects.toThrow(/restore from file:\/\/\/x .*is not finished/);
    await emptyHome();
  });

  it('may be killed while it is restored, and goes on from there', async () => {
    const child = spawn(process.execPath, [entry, 'restore', '--from', `file://${store}`, '--jobs', '1'], {
      env: { PATH: process.env.PATH, CATNAP_HOME: program.home.path, CATNAP_BACKUP_KEY: keyLine },
    });
    await new Promise<void>((resolve) => {
      child.stderr.on('data', (chunk: Buffer) => {
        if (/1 of 4: /.test(chunk.toString())) child.kill('SIGKILL');
      });
      child.on('exit', () => resolve());
    });
    expect(child.signalCode).toBe('SIGKILL');
    await expect(catnap(['up'])).rejects.toThrow(/is not finished: run the same/);
    await expect(restore('--at', new Date().toISOString())).rejects.toThrow(/holds an unfinished restore/);
  });

  it('is restored with everything that was in the store', async () => {
    const startedAt = Date.now();
    // It exits with 1 if something is missing, and says what.
    const { stdout, stderr } = await restore().catch((error: { stdout: string; stderr: string }) => error);
    const report = JSON.parse(stdout);
    expect(report).toMatchObject({ missing: [], isComplete: true });
    expect(stderr).toMatch(/continuing the restore[\s\S]*restored before[\s\S]*4 of 4: project /);
    await program.start();
    expect(await program.apiKey()).toBe(apiKey);
    for (const { id, uri, acknowledged } of projects) {
      expect((await program.api('GET', `/projects/${id}`)).status).toBe(200);
      const found = Number(await ask(uri, 'select max(n) from written'));
      expect(Number(await ask(uri, 'select count(*) from written'))).toBe(found);
      const until = stored.get(id) ?? 0;
      const owed = acknowledged.filter(({ at }) => at < until).at(-1)?.n ?? 0;
      expect(owed).toBeGreaterThan(50);
      expect(found).toBeGreaterThanOrEqual(owed);
      await ask(uri, 'insert into written values (0) returning n');
    }
    const seconds = ((Date.now() - startedAt) / 1_000).toFixed(1);
    process.stdout.write(`drill: ${seconds} s until every project answers; recovery point ${report.until}\n`);
  });

  it('has its snapshots again, and they become branches', async () => {
    const { id = '', uri = '' } = projects[0] ?? {};
    const listed = (await program.api('GET', `/projects/${id}/snapshots`)).body.snapshots;
    expect(listed.map((one: { id: string }) => one.id).toSorted()).toEqual(snapshots.toSorted());
    const values: (string | null)[] = [];
    for (const snapshot of snapshots) {
      const { status, body } = await program.api('POST', `/projects/${id}/snapshots/${snapshot}/restore`, {});
      expect([body.message, status]).toEqual([undefined, 200]);
      await program.settle(id);
      const { body: main } = await program.api('GET', `/projects/${id}/endpoints`);
      const [made] = main.endpoints.filter((one: { branch_id: string }) => one.branch_id === body.branch.id);
      const own = uri.replaceAll(/ep-\w+-\w+-\w+/g, made.id);
      values.push(await ask(own, "select string_agg(value, ' ' order by value) from kept"));
    }
    expect(values).toEqual(['awake', 'asleep awake']);
  });
});
