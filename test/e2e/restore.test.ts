/**
 * The drill: an installation under load whose data home is gone. A new one is restored from the store, to a moment and
 * to the newest, and holds every row that is older than the store was behind; strings, keys and passwords work as
 * before. Then single projects are restored into it while it runs. One project has Postgres 17, the other 18; the store
 * is a bucket where the mock of one is installed. Each test goes on from the one before it.
 */
import { execFile, spawn } from 'node:child_process';
import { chmod, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { newBackupKeyLine } from '../../src/backup/seal/backup-key.ts';
import { unmountUnder } from '../../src/compute/local/host/disks/mounts.ts';
import { findStorageRoot } from '../../src/compute/local/host/disks/storage-image.ts';
import { createLayout } from '../../src/compute/local/host/home/layout.ts';
import { eventually, thinkTime, usualDeadlineMs } from '../helpers/eventually.ts';
import { forgetKilledServers } from '../helpers/killed-servers.ts';
import { Program } from '../helpers/program.ts';
import { ask } from '../helpers/query.ts';
import { hasS3Mock, type S3Mock, startS3Mock } from '../helpers/s3-mock.ts';

const run = promisify(execFile);
const entry = fileURLToPath(new URL('../../dist/bin.js', import.meta.url));
/** Several servers start, and a machine of CI is busy. */
/** All histories for the first time, and the system's own among them. */
const patience = { deadlineMs: 2 * usualDeadlineMs, everyMs: 500 } as const;
let keyLine: string;
let program: Program;
let folder: string;
let mock: S3Mock | undefined;
let store: string;
let apiKey: string;
const projects: Written[] = [];
/** A moment at which both projects have rows, and later ones follow. */
let moment: string;
let snapshots: string[];
let failedBefore: string | null = null;

interface HistoryReply {
  readonly snapshot_id: string | null;
  readonly base_count: number;
}

interface Written {
  readonly id: string;
  readonly uri: string;
  /** Numbers that were committed, and when the client knew. */
  readonly acknowledged: { readonly n: number; readonly at: number }[];
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cn-store-'));
  await chmod(folder, 0o777);
  mock = hasS3Mock ? await startS3Mock() : undefined;
  store = mock === undefined ? `file://${folder}` : 's3://catnap/drill';
  program = await Program.create({ CATNAP_BACKUP_DELAY: '2', ...mock?.env });
  await program.start([], { CATNAP_BACKUP_URL: store });
  apiKey = await program.apiKey();
});
afterAll(async () => {
  await program.destroy();
  await mock?.close();
  await rm(folder, { recursive: true, force: true });
});
beforeEach((context) => {
  if (failedBefore !== null) context.skip(`it goes on from “${failedBefore}”, which has failed`);
  context.onTestFailed(() => {
    failedBefore = context.task.name;
  });
});

async function createProject(name: string, pg_version: number): Promise<Written> {
  const { status, body } = await program.api('POST', '/projects', { project: { name, pg_version } });
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
      await thinkTime(25);
    }
  } catch {
    // The machine is lost.
  }
}

/** By project, `system` among them: the moment up to which the store has everything. Fails unless all are later. */
async function storedUntil(after: number): Promise<Map<string, number>> {
  const { body } = await program.api('GET', '/backup');
  const ends = new Map<string, number>();
  for (const one of body.histories) {
    const end = Date.parse(one.stored_until ?? '') || 0;
    ends.set(one.project_id, Math.max(end, ends.get(one.project_id) ?? 0));
  }
  for (const end of ends.values()) expect(end, JSON.stringify(body)).toBeGreaterThan(after);
  return ends;
}

async function loseMachine(): Promise<void> {
  await program.killHard();
  for (const pid of await program.serverPids()) process.kill(pid, 'SIGKILL');
  await eventually(async () => expect(await program.serverPids()).toEqual([]));
}

async function emptyHome(): Promise<void> {
  await forgetKilledServers(program.home.path);
  await unmountUnder(program.home.path);
  for (const name of await readdir(program.home.path)) {
    await rm(join(program.home.path, name), { recursive: true, force: true });
  }
}

const environment = () => ({
  PATH: process.env.PATH ?? '',
  HOME: program.home.path,
  CATNAP_HOME: program.home.path,
  CATNAP_HTTP_PORT: String(program.httpPort),
  ...mock?.env,
});
const catnap = (args: readonly string[], env: Record<string, string> = {}) =>
  run(process.execPath, [entry, ...args], { env: { ...environment(), CATNAP_BACKUP_URL: store, ...env } });
const restore = (...more: string[]) =>
  catnap(['--json', 'restore', '--from', store, ...more], { CATNAP_BACKUP_KEY: keyLine });

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

/** Kills a restore as soon as it has said something. */
async function killAt(said: RegExp, ...more: string[]): Promise<void> {
  const child = spawn(process.execPath, [entry, 'restore', '--from', store, '--jobs', '1', ...more], {
    env: { ...environment(), CATNAP_BACKUP_KEY: keyLine },
  });
  let output = '';
  await new Promise<void>((resolve) => {
    child.stderr.on('data', (chunk: Buffer) => {
      output += chunk.toString();
      if (said.test(output)) child.kill('SIGKILL');
    });
    child.on('exit', () => resolve());
  });
  expect(child.signalCode, output).toBe('SIGKILL');
}

const first = () => projects[0] ?? expect.fail('there is no project');
const second = () => projects[1] ?? expect.fail('there is no second project');
const nameOf = async ({ id }: Written) => (await program.api('GET', `/projects/${id}`)).body.project.name;

describe('a lost machine', { timeout: 600_000 }, () => {
  /** By project, the moment up to which the store was known to have everything. */
  let stored: Map<string, number>;
  const writers: Promise<void>[] = [];

  it('has projects, and snapshots of a branch that is deleted', async () => {
    projects.push(await createProject('one', 17), await createProject('two', 18));
    snapshots = await takeSnapshots(first().id);
    expect(snapshots).toHaveLength(2);
  });

  it('has its projects, under load, in the store', async () => {
    writers.push(...projects.map(writeUntilTheEnd));
    const haveWritten = (more: number) => {
      for (const { acknowledged } of projects) expect(acknowledged.length).toBeGreaterThan(more);
    };
    await eventually(() => haveWritten(100), patience);
    moment = new Date().toISOString();
    await program.api('PATCH', `/projects/${first().id}`, { project: { name: 'one, renamed' } });
    const most = Math.max(...projects.map(({ acknowledged }) => acknowledged.length));
    await eventually(() => haveWritten(most + 50), patience);
    const begun = Date.now();
    await eventually(async () => {
      stored = await storedUntil(begun);
      expect([...stored.keys()]).toHaveLength(3);
      const { histories } = (await program.api('GET', '/backup')).body;
      const kept = (histories as HistoryReply[]).filter((one) => one.snapshot_id !== null);
      expect(kept.map((one) => one.base_count)).toEqual([1, 1]);
      expect(kept.map((one) => one.snapshot_id).toSorted()).toEqual(snapshots.toSorted());
    }, patience);
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
    await loseMachine();
    await Promise.all(writers);
  });

  it('is not restored over what is there, nor with a wrong key, nor beside a Catnap', async () => {
    await expect(restore()).rejects.toThrow(/is not empty \(it holds/);
    await expect(restore('--project', first().id)).rejects.toThrow(/no Catnap runs on/);
    await emptyHome();
    const wrong = catnap(['restore', '--from', store], { CATNAP_BACKUP_KEY: newBackupKeyLine() });
    await expect(wrong).rejects.toThrow(/wrong backup key/);
    await expect(restore('--at', '2020-01-01T00:00:00Z')).rejects.toThrow(/begins at/);
    await rm(join(program.home.path, 'restore.json'), { force: true });
  });

  it('does not start while a restore is not finished', async () => {
    await writeFile(join(program.home.path, 'restore.json'), JSON.stringify({ from: 'file:///x' }));
    await expect(catnap(['up'])).rejects.toThrow(/restore from file:\/\/\/x .*is not finished/);
    await emptyHome();
  });

  it('is restored to a moment, all of it, and goes on where it was killed', async () => {
    await killAt(/1 of 4: /, '--at', moment);
    await expect(catnap(['up'])).rejects.toThrow(/is not finished: run the same/);
    await expect(restore()).rejects.toThrow(/holds an unfinished restore/);
    const { stdout, stderr } = await restore('--at', moment);
    expect(JSON.parse(stdout)).toMatchObject({ missing: [], isComplete: true, at: moment });
    expect(stderr).toMatch(/continuing the restore[\s\S]*restored before[\s\S]*4 of 4: project /);
    // Without the store, which stays as the lost machine has left it.
    await program.start();
    expect(await nameOf(first())).toBe('one');
    for (const { uri, acknowledged } of projects) {
      const owed = acknowledged.filter(({ at }) => at < Date.parse(moment)).length;
      const found = Number(await ask(uri, 'select count(*) from written'));
      // The row that was on its way at the moment is there or not.
      expect(found === owed || found === owed + 1, `${found} rows instead of ${owed}`).toBe(true);
    }
    await loseMachine();
    await emptyHome();
  });

  it('is restored with everything that was in the store', async () => {
    const startedAt = Date.now();
    // It exits with 1 if something is missing, and says what.
    const { stdout } = await restore().catch((error: { stdout: string }) => error);
    const report = JSON.parse(stdout);
    expect(report).toMatchObject({ missing: [], isComplete: true });
    await program.start([], { CATNAP_BACKUP_URL: store });
    expect(await program.apiKey()).toBe(apiKey);
    expect(await nameOf(first())).toBe('one, renamed');
    for (const { id, uri, acknowledged } of projects) {
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
});

describe('one project', { timeout: 600_000 }, () => {
  const rowsOf = async (uri: string) => Number(await ask(uri, 'select count(*) from written'));
  let user: string;

  it('is in the store, with an application’s users', async () => {
    const { id, uri } = second();
    const { body: branches } = await program.api('GET', `/projects/${id}/branches`);
    const place = { auth_provider: 'stack', project_id: id, branch_id: branches.branches[0].id };
    expect((await program.api('POST', '/projects/auth/create', place)).status).toBe(201);
    const person = { auth_provider: 'stack', project_id: id, email: 'ann@example.com' };
    user = (await program.api('POST', '/projects/auth/user', person)).body.id;
    await eventually(async () => expect(await ask(uri, 'select id from neon_auth.users_sync')).toBe(user), patience);
    const written = Date.now();
    await eventually(() => storedUntil(written), patience);
  });

  it('is never restored over itself, but beside itself', async () => {
    await expect(restore('--project', first().id)).rejects.toThrow(/is here, and a restore replaces nothing/);
    await expect(restore('--project', 'no-such-project')).rejects.toThrow(/has no data of project no-such-project/);
    const list = async () => (await program.api('GET', '/projects?limit=100')).body.projects.map(projectId).toSorted();
    const projectId = (project: { id: string }) => project.id;
    const before = await list();
    await killAt(/reading the system database/, '--project', first().id, '--as-new');
    // Refused until the system database has noticed that the first is dead.
    await eventually(() => killAt(/ is there; /, '--project', first().id, '--as-new'), patience);
    const begun = (await list()).filter((one: string) => !before.includes(one));
    expect(begun).toHaveLength(1);
    await eventually(async () => {
      const { body } = await program.api('GET', `/projects/${begun[0]}/operations`);
      const states = body.operations.map(({ action, status }: Record<string, string>) => `${action} ${status}`);
      expect([...new Set(states)]).toEqual(['tenant_attach error']);
    }, patience);
    const { stdout, stderr } = await restore('--project', first().id, '--as-new');
    const report = JSON.parse(stdout);
    expect(stderr).toMatch(/continuing the restore/);
    expect(report).toMatchObject({ missing: [], isComplete: true, project: { id: begun[0] } });
    expect(await list()).toEqual([...before, ...begun].toSorted());
    const layout = createLayout(program.home.path, await findStorageRoot(program.home.path));
    const { id } = report.project;
    // Catnap keeps spare disks there too.
    const scratch = (await readdir(layout.work)).filter((name) => /^(restore|home)-/.test(name));
    const unfinished = (await readdir(layout.branches(id))).filter((name) => name.startsWith('.'));
    expect([...scratch, ...unfinished]).toEqual([]);
    expect(id).not.toBe(first().id);
    const wanted = 'database_name=neondb&role_name=neondb_owner';
    const { body } = await program.api('GET', `/projects/${id}/connection_uri?${wanted}`);
    expect(new URL(body.uri).password).toBe(new URL(first().uri).password);
    expect(await rowsOf(body.uri)).toBe(await rowsOf(first().uri));
    await ask(body.uri, 'delete from written returning 1');
    expect(await rowsOf(first().uri)).toBeGreaterThan(50);
    await program.removeProject(id);
  });

  it('that was purged comes back with all that it had, and goes on where it was killed', async () => {
    const { id, uri } = second();
    const rows = await rowsOf(uri);
    await program.removeProject(id);
    // Refused for as long as its last operation runs.
    await eventually(() => killAt(/ is there; 1 branch/, '--project', id), patience);
    const attach = async () => {
      const { body } = await program.api('GET', `/projects/${id}/operations`);
      return body.operations.find(({ action }: { action: string }) => action === 'tenant_attach');
    };
    await eventually(async () => {
      expect(await attach()).toMatchObject({ status: 'error', error: expect.stringMatching(/was cut off: the same/) });
    }, patience);
    const { stdout, stderr } = await restore('--project', id);
    expect(JSON.parse(stdout)).toMatchObject({ project: { id, name: 'two' }, missing: [], isComplete: true });
    expect(stderr).toMatch(/continuing the restore/);
    expect(await attach()).toMatchObject({ status: 'finished' });
    expect(await rowsOf(uri)).toBe(rows);
    expect(await ask(uri, 'select id from neon_auth.users_sync')).toBe(user);
    const later = { auth_provider: 'stack', project_id: id, email: 'bob@example.com' };
    expect((await program.api('POST', '/projects/auth/user', later)).status).toBe(201);
    await eventually(
      async () => expect(await ask(uri, 'select count(*) from neon_auth.users_sync')).toBe('2'),
      patience,
    );
  });
});

describe('snapshots', () => {
  it('are there again, and become branches', async () => {
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
