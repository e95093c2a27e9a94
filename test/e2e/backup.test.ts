/**
 * Off the machine, through the front door: what is written to a branch is in the store soon, and plain tools with a
 * bare Postgres bring it back, by the very commands of the documentation. A branch whose log continues on another
 * timeline loses nothing by that.
 */
import { execFile } from 'node:child_process';
import { chmod, chown, cp, mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readHistoryDocument, readManifest } from '../../src/backup/documents.ts';
import { parseBackupKey } from '../../src/backup/seal/backup-key.ts';
import { FileStore } from '../../src/backup/store/file-store.ts';
import { lsnBytes } from '../../src/lib/moments.ts';
import { eventually, usualDeadlineMs } from '../helpers/eventually.ts';
import { Program } from '../helpers/program.ts';
import { ask } from '../helpers/query.ts';

const run = promisify(execFile);
const isRoot = process.getuid?.() === 0;
const serviceUid = 700_000;
let place: string;
let folder: string;
let program: Program;
let projectId: string;
let uri: string;

const status = async () => (await program.api('GET', '/backup')).body;
const catnap = (...args: string[]) => catnapWith({}, ...args);
const catnapWith = (env: Record<string, string>, ...args: string[]) =>
  run(process.execPath, [fileURLToPath(new URL('../../dist/bin.js', import.meta.url)), ...args], {
    env: { ...process.env, CATNAP_HOME: program.home.path, CATNAP_HTTP_PORT: String(program.httpPort), ...env },
  });

beforeAll(async () => {
  place = await mkdtemp(join(tmpdir(), 'cn-backup-'));
  folder = join(place, 'store');
  await mkdir(folder, { mode: 0o700 });
  await chmod(place, 0o755);
  if (isRoot) await chown(folder, serviceUid, serviceUid);
  program = await Program.create({ CATNAP_BACKUP_URL: `file://${folder}`, CATNAP_BACKUP_DELAY: '1' });
  await program.start();
  const { body } = await program.api('POST', '/projects', { project: { name: 'cats' } });
  projectId = body.project.id;
  uri = body.connection_uris[0].connection_uri;
  await ask(uri, 'create table cat (id int primary key, name text)');
  await ask(uri, "insert into cat select i, 'cat ' || i from generate_series(1, 1000) i");
});

afterAll(async () => {
  await program.destroy();
  await rm(place, { recursive: true, force: true });
});

const patience = { deadlineMs: 2 * usualDeadlineMs, everyMs: 200 } as const;
const timeNow = `select to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;

/** Until the store has everything of a branch up to now. */
async function untilUploaded(of = uri, branchId?: string): Promise<void> {
  const end = lsnBytes(await ask(of, 'select pg_current_wal_flush_lsn()'));
  await eventually(async () => {
    const found = await status();
    const isIt = (one: { project_id: string; branch_id: string }) =>
      one.project_id === projectId && (branchId === undefined || one.branch_id === branchId);
    const own = found.histories.find(isIt);
    expect(own).toMatchObject({ behind_seconds: 0, problem: null });
    expect(own.base_count).toBeGreaterThan(0);
    expect(lsnBytes(own.stored_lsn)).toBeGreaterThanOrEqual(end);
  }, patience);
}

test('what is written is in the store soon, and status, list and metrics say so', async () => {
  await untilUploaded();
  expect(await status()).toMatchObject({ state: 'ok', alerts: [], url: `file://${folder}` });
  const { stdout } = await catnap('backup', 'list');
  expect(stdout).toMatch(/cats +main/);
  expect((await catnap('backup', 'status')).stdout).toMatch(/state: +ok/);
  const metrics = await (await fetch(`http://127.0.0.1:${program.httpPort}/metrics`)).text();
  expect(metrics).toMatch(/^catnap_backup_failing 0$/m);
  expect(metrics).toMatch(/^catnap_backup_unprotected 0$/m);
  const key = await catnap('backup', 'key');
  expect(key.stdout).toMatch(/^[\w-]{43}\n$/);
  expect(key.stderr).toContain('Keep this line somewhere else');
});

test('a bare Postgres restores it with plain tools, to the moment', async () => {
  const moment = await ask(uri, 'select clock_timestamp()::text');
  await ask(uri, 'drop table cat');
  await untilUploaded();
  const line = (await catnap('backup', 'key')).stdout;
  const at = { store: new FileStore(folder), key: parseBackupKey(line) };
  const manifest = await readManifest(at);
  const historyId = manifest?.projects.find(({ id }) => id === projectId)?.branches[0]?.histories[0] ?? '';
  const document = await readHistoryDocument(at, { projectId, historyId });
  const base = document?.bases.findLast((one) => Date.parse(one.at) <= Date.parse(moment));
  const work = join(place, 'bare');
  await mkdir(work, { mode: 0o777 });
  await chmod(work, 0o777);
  const builds = join(program.home.path, 'builds', '17');
  const [build = ''] = await readdir(builds);
  const choices = [
    `STORE=${folder}`,
    `KEY=${join(work, 'backup.key')}`,
    `PATH=${join(builds, build, 'bin')}:$PATH`,
    `HISTORY=$STORE/projects/${projectId}/${historyId}`,
    `BASE=${base?.name}`,
    `MOMENT='${moment}'`,
  ];
  await writeFile(join(work, 'backup.key'), line);
  // The reader may choose these; everything else is run as it is printed.
  const documented = (await shellBlocks()).replaceAll(/^(STORE|KEY|PATH|HISTORY|BASE|MOMENT)=.*$/gm, (assignment) => {
    const name = assignment.slice(0, assignment.indexOf('='));
    return choices.find((choice) => choice.startsWith(`${name}=`)) ?? assignment;
  });
  await writeFile(join(work, 'restore'), `set -eo pipefail\ncd ${work}\n${documented}\n`);
  const asUser = isRoot ? { uid: serviceUid, gid: serviceUid } : {};
  try {
    await run('bash', [join(work, 'restore')], asUser);
    const bare = `postgres://catnap_admin@/neondb?host=${work}`;
    await eventually(async () => expect(await ask(bare, 'select count(*) from cat')).toBe('1000'));
  } catch (error) {
    throw new Error(await readFile(join(work, 'server.log'), 'utf8').catch(() => ''), { cause: error });
  } finally {
    await run(
      join(builds, build, 'bin', 'pg_ctl'),
      ['stop', '-m', 'immediate', '-D', join(work, 'data')],
      asUser,
    ).catch(() => {});
  }
});

test('a store that is away stops nobody, is said aloud, and is caught up with', async () => {
  await rename(folder, `${folder}-away`);
  await ask(uri, 'create table later (id int)');
  await eventually(async () => expect(await status()).toMatchObject({ state: 'failing' }));
  expect((await status()).alerts[0]).toMatch(/Backups fail since .*: file:.*the folder is not there/);
  const failed = await catnap('backup', 'status').catch((error: { code: number; stdout: string }) => error);
  expect(failed).toMatchObject({ code: 1, stdout: expect.stringMatching(/state: +failing/) });
  expect(await ask(uri, 'select count(*) from later')).toBe('0');
  await rename(`${folder}-away`, folder);
  await untilUploaded();
  expect(await status()).toMatchObject({ state: 'ok', alerts: [] });
});

test('the uploader is killed, and goes on', async () => {
  for (const pid of await program.processPids('backup')) process.kill(pid, 'SIGKILL');
  await ask(uri, 'insert into later values (1)');
  await untilUploaded();
  expect((await status()).state).toBe('ok');
});

describe('a branch that was copied while its parent was awake, and wakes later', { timeout: 600_000 }, () => {
  const at = (path: string) => `/projects/${projectId}${path}`;
  const rows = "select string_agg(n::text, ' ' order by n) from woken";
  let branchId: string;
  let own: string;
  let historyId: string;
  /** After the wake, with one base image in the store, which is older than the wake. */
  let moment: string;

  const historyOf = async () =>
    (await status()).histories.find((one: { branch_id: string }) => one.branch_id === branchId);
  const documentOf = async () => {
    const key = parseBackupKey((await catnap('backup', 'key')).stdout);
    return readHistoryDocument({ store: new FileStore(folder), key }, { projectId, historyId });
  };

  test('has no gap in the store', async () => {
    await ask(uri, 'create table of_parent as select 1 as n');
    const { body: made } = await program.api('POST', at('/branches'), { branch: { name: 'hooked' } });
    branchId = made.branch.id;
    await program.settle(projectId);
    await eventually(async () => expect(await historyOf()).toMatchObject({ base_count: 1 }), patience);
    historyId = (await historyOf()).history_id;
    const options = { endpoint: { branch_id: branchId, type: 'read_write' } };
    const { body: woken } = await program.api('POST', at('/endpoints'), options);
    await program.settle(projectId);
    own = uri.replaceAll(/ep-\w+-\w+-\w+/g, woken.endpoint.id);
    await ask(own, 'create table woken (n int)');
    await ask(own, 'insert into woken values (1)');
    moment = await ask(own, timeNow);
    await ask(own, 'insert into woken values (2)');
    await untilUploaded(own, branchId);
    expect(await historyOf()).toMatchObject({ base_count: 1, gap_count: 0 });
    expect((await status()).alerts).toEqual([]);
    const document = await documentOf();
    expect(document?.timeline).toBeGreaterThan(document?.bases[0]?.timeline ?? Number.POSITIVE_INFINITY);
  });

  test('is verified, but not where the store lacks what says how its log goes on', async () => {
    const verify = async (url: string) => {
      const verified = catnapWith({ CATNAP_BACKUP_URL: url }, '--json', 'backup', 'verify', '--all');
      const { stdout } = await verified.catch((error: { stdout: string }) => error);
      const found = JSON.parse(stdout).verified.find((one: { branchId: string }) => one.branchId === branchId);
      return found as { problems: string[] };
    };
    const damaged = join(place, 'damaged');
    const history = join('projects', projectId, historyId);
    for (const part of ['catnap.json', history]) await cp(join(folder, part), join(damaged, part), { recursive: true });
    const log = join(damaged, history, 'log');
    for (const name of await readdir(log)) if (name.includes('.history')) await rm(join(log, name));
    const { problems } = await verify(`file://${damaged}`);
    expect(problems).toEqual([expect.stringMatching(/\.history\S* says where timeline \d+ ended/)]);
    expect(await verify(`file://${folder}`)).toMatchObject({ problems: [] });
  });

  test('is restored to a moment behind the change, from the base image before it', async () => {
    const restored = await restoreBeside('--at', moment);
    expect(await ask(restored, rows)).toBe('1');
    expect(await ask(restored, 'select n from of_parent')).toBe('1');
  });

  test('is restored to the same moment and to the newest, once there is another base image', async () => {
    // More log than a restore should have to replay, so that a second base image goes up.
    await ask(own, 'create table filler (t text)');
    for (let n = 1; n <= 7; n++) {
      await ask(own, "insert into filler select repeat('x', 1000) from generate_series(1, 30000)");
    }
    await eventually(async () => expect((await historyOf()).base_count).toBeGreaterThan(1), patience);
    await ask(own, 'insert into woken values (3)');
    await untilUploaded(own, branchId);
    expect(await historyOf()).toMatchObject({ gap_count: 0 });
    const document = await documentOf();
    expect(document?.gaps).toEqual([]);
    const [first, second] = document?.bases ?? [];
    expect(second?.timeline).toBeGreaterThan(first?.timeline ?? Number.POSITIVE_INFINITY);
    expect(await ask(await restoreBeside('--at', moment), rows)).toBe('1');
    expect(await ask(await restoreBeside(), rows)).toBe('1 2 3');
  });

  /** The connection string of the branch in a copy of the project. */
  async function restoreBeside(...moment: string[]): Promise<string> {
    const args = ['--json', 'restore', '--from', `file://${folder}`, '--project', projectId, '--as-new', ...moment];
    const report = JSON.parse((await catnap(...args)).stdout);
    expect(report).toMatchObject({ missing: [], isComplete: true });
    const { id } = report.project;
    const { branches } = (await program.api('GET', `/projects/${id}/branches`)).body;
    const { id: branch } = branches.find((one: { name: string }) => one.name === 'hooked');
    const wanted = `branch_id=${branch}&database_name=neondb&role_name=neondb_owner`;
    return (await program.api('GET', `/projects/${id}/connection_uri?${wanted}`)).body.uri;
  }
});

/** The commands under "Without Catnap". */
async function shellBlocks(): Promise<string> {
  const text = await readFile(new URL('../../docs/backup.md', import.meta.url), 'utf8');
  const [section = ''] = text.slice(text.indexOf('## Without Catnap') + 3).split(/^## /m);
  return [...section.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map((match) => match[1]).join('\n');
}
