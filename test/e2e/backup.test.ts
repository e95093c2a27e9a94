/**
 * Off the machine, through the front door: what is written to a branch is in the store soon, and plain tools with a
 * bare Postgres bring it back, by the very commands of the documentation.
 */
import { execFile } from 'node:child_process';
import { chmod, chown, mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
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
const catnap = (...args: string[]) =>
  run(process.execPath, [fileURLToPath(new URL('../../dist/bin.js', import.meta.url)), ...args], {
    env: { ...process.env, CATNAP_HOME: program.home.path, CATNAP_HTTP_PORT: String(program.httpPort) },
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

/** Until the store has everything up to now. */
async function untilUploaded(): Promise<void> {
  const end = lsnBytes(await ask(uri, 'select pg_current_wal_flush_lsn()'));
  await eventually(
    async () => {
      const found = await status();
      const own = found.histories.find((one: { project_id: string }) => one.project_id === projectId);
      expect(own).toMatchObject({ behind_seconds: 0, problem: null });
      expect(own.base_count).toBeGreaterThan(0);
      expect(lsnBytes(own.stored_lsn)).toBeGreaterThanOrEqual(end);
    },
    { deadlineMs: 2 * usualDeadlineMs, everyMs: 200 },
  );
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

/** The commands under "Without Catnap". */
async function shellBlocks(): Promise<string> {
  const text = await readFile(new URL('../../docs/backup.md', import.meta.url), 'utf8');
  const [section = ''] = text.slice(text.indexOf('## Without Catnap') + 3).split(/^## /m);
  return [...section.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map((match) => match[1]).join('\n');
}
