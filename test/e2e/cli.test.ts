/** The `catnap` command against a real Catnap: nouns and verbs, names and ids, the link of a folder, exit codes. */
import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Program } from '../helpers/program.ts';
import { ask } from '../helpers/query.ts';
import { catnapCommand } from '../helpers/run-cli.ts';

let program: Program;
let folder: string;
let projectId: string;

beforeAll(async () => {
  program = await Program.create({ CATNAP_LOG_FORMAT: 'text' });
  await program.start();
  folder = await mkdtemp(join(tmpdir(), 'catnap-cli-'));
  const made = JSON.parse((await catnap('projects create shop --json')).out);
  projectId = made.project.id;
});
afterAll(async () => {
  await program.destroy();
  await rm(folder, { recursive: true, force: true });
});

/** Words are divided by spaces; a statement is handed over as one. */
async function catnap(words: string | readonly string[], where = folder) {
  const args = typeof words === 'string' ? words.split(' ') : words;
  const url = `http://127.0.0.1:${program.httpPort}`;
  return catnapCommand(args, { url, home: program.home.path, folder: where, apiKey: await program.apiKey() });
}

/** As the console does with what its address holds. */
async function signInWith(link: string): Promise<number> {
  const headers = { 'content-type': 'application/json', 'x-catnap-console': '1' };
  const url = `http://localhost:${program.httpPort}/console/session`;
  return (await fetch(url, { method: 'POST', headers, body: JSON.stringify({ link }) })).status;
}

async function json(words: string) {
  const { code, out, err } = await catnap(`${words} --json`);
  expect({ code, err }).toEqual({ code: 0, err: '' });
  return JSON.parse(out);
}

describe('projects', () => {
  test('are found by id, by name, and without either when there is one', async () => {
    for (const words of ['projects get', 'projects get shop', `projects get ${projectId}`, 'project get']) {
      expect((await json(words)).id, words).toBe(projectId);
    }
    expect((await catnap('projects list')).out).toMatch(new RegExp(`\n${projectId} +shop `));
    expect(await catnap('projects get none')).toMatchObject({ code: 1, err: 'catnap: there is no project none\n' });
  });

  test('are found by names that cannot be ids', async () => {
    for (const name of ['The Shop', 'shop_2', 'Läden/2']) {
      const { id } = JSON.parse((await catnap(['projects', 'create', name, '--no-wait', '--json'])).out).project;
      const found = await catnap(['projects', 'get', name, '--json']);
      expect(found).toMatchObject({ code: 0, out: expect.stringContaining(`"id": "${id}"`) });
      expect((await catnap(['branches', 'list', '--project', name])).out).toContain('main');
      expect(await catnap(['projects', 'delete', name])).toMatchObject({ code: 0 });
      const gone = await catnap(['projects', 'get', name]);
      expect(gone).toMatchObject({ code: 1, err: `catnap: there is no project ${name}\n` });
    }
  });

  test('have to be named once there are several; two of one name, by id', async () => {
    const ids = [];
    for (const name of ['twin', 'twin']) {
      ids.push((await json(`projects create --name ${name} --no-wait`)).project.id);
    }
    expect(await catnap('branches list')).toMatchObject({ code: 2, err: expect.stringContaining('pass --project') });
    const refused = await catnap('branches list --project twin');
    expect(refused).toMatchObject({ code: 1, err: expect.stringContaining('several projects are named twin') });
    for (const id of ids) expect((await catnap(`projects delete ${id}`)).out).toMatch(/^deleted: +\S+\nname: +twin/);
    expect(await json('projects list')).toHaveLength(1);
  });
});

describe('branches', () => {
  test('are made with a compute that is awake when the command ends, used, renamed and deleted', async () => {
    const tooFar = await catnap('branches create dev --expires-at 2099-01-01T00:00:00Z');
    expect(tooFar).toMatchObject({ code: 1, err: expect.stringContaining('expires_at') });
    const { branch, connection_uris: uris, endpoints } = await json('branches create dev --size 0.25-1');
    expect(await json(`computes get ${endpoints[0].id}`)).toMatchObject({
      current_state: 'active',
      autoscaling_limit_max_cu: 1,
    });
    expect(await ask(uris[0].connection_uri, 'SELECT 1')).toBe('1');
    expect((await catnap('branches list')).out).toMatch(new RegExp(`\n${branch.id} +dev +false +ready `));
    expect((await json('branches rename dev next')).name).toBe('next');
    expect((await json(`branches get ${branch.id}`)).name).toBe('next');
    const expiry = new Date(Date.now() + 86_400_000).toISOString();
    expect((await json(`branches set-expiration next ${expiry}`)).expires_at).toBeDefined();
    expect((await json('branches set-expiration next never')).expires_at).toBeUndefined();
    expect((await catnap('branches delete next')).out).toMatch(/^deleted: +br-\S+\nname: +next\n$/);
    expect(await catnap('branches get next')).toMatchObject({ code: 1, err: 'catnap: there is no branch next\n' });
    expect((await catnap('recover next')).code).toBe(0);
    expect((await catnap('branches delete next --no-wait')).code).toBe(0);
  });

  test('are compared, reset to their parent and restored to a moment', async () => {
    const columns = async () => {
      const count = `SELECT count(*)::int AS n FROM information_schema.columns WHERE table_name = 'cats'`;
      return JSON.parse((await catnap(['sql', count, '--branch', 'lab', '--json'])).out)[0].n;
    };
    await catnap(['sql', 'CREATE TABLE cats (id int PRIMARY KEY, name text)']);
    await json('branches create lab');
    await catnap(['sql', 'ALTER TABLE cats ADD COLUMN age int', '--branch', 'lab']);
    expect((await catnap('branches schema-diff lab')).out).toMatch(/^\+ +age integer/m);
    expect((await catnap('branches schema main')).out).toContain('CREATE TABLE public.cats');
    expect((await json('branches reset lab')).last_reset_at).toBeDefined();
    expect(await columns()).toBe(2);
    const refused = await catnap('branches restore lab main@');
    expect(refused).toMatchObject({ code: 2, err: expect.stringContaining('main@ names no moment') });
    await catnap(['sql', 'ALTER TABLE cats ADD COLUMN later int', '--branch', 'lab']);
    expect(await json('operations list --limit 3')).toHaveLength(3);
    expect((await json('branches restore lab ^parent --preserve-under-name lab-before')).name).toBe('lab');
    expect(await columns()).toBe(2);
    expect((await catnap('branches list')).out).toMatch(/\nbr-\S+ +lab-before /);
  });
});

describe('what is inside a branch', () => {
  test('roles and databases come, change and go', async () => {
    const { name, password } = await json('roles create reader');
    expect(name).toBe('reader');
    expect((await json('roles password reader')).password).toBe(password);
    expect((await json('roles reset-password reader')).password).not.toBe(password);
    expect((await json('databases create reports --owner reader')).owner_name).toBe('reader');
    expect((await catnap('databases list')).out).toMatch(/\nreports +reader /);
    const uri = (await catnap('connection-string --database reports --pooled')).out.trim();
    expect(uri).toMatch(/^postgres.*:\/\/reader:.*\/reports/);
    expect(uri).toContain('-pooler');
    expect(await ask(uri, 'SELECT current_user')).toBe('reader');
    expect(await catnap('databases delete reports')).toMatchObject({ code: 1, err: expect.stringContaining('--yes') });
    expect((await catnap('databases delete reports --yes')).out).toBe('deleted:  reports\n');
    expect((await catnap('roles delete reader')).out).toBe('deleted:  reader\n');
    expect(await catnap('roles create')).toMatchObject({ code: 2, err: expect.stringContaining('a name is needed') });
  });

  test('statements run over HTTP, with values, from a pipe, and without the right to write', async () => {
    expect((await catnap(['sql', 'SELECT $1::int + 1 AS n, NULL AS nothing', '-p', '41'])).out).toBe(
      'N   NOTHING\n42  -\n',
    );
    const stdin = new PassThrough();
    stdin.end('SELECT 1 AS one');
    const url = `http://127.0.0.1:${program.httpPort}`;
    const piped = await catnapCommand(['sql', '--json'], { url, folder, apiKey: await program.apiKey(), stdin });
    expect(JSON.parse(piped.out)).toEqual([{ one: 1 }]);
    const refused = await catnap(['sql', '--read-only', 'CREATE TABLE t ()']);
    expect(refused).toMatchObject({ code: 1, err: expect.stringMatching(/read-only transaction \(SQLSTATE 25006\)/) });
    const wrong = await catnap(['sql', 'SELEC 1']);
    expect(wrong.err).toMatch(/^catnap: ERROR: syntax error.*\(SQLSTATE 42601\)\nat character 1\n$/);
    const nowhere = await catnap(['sql', 'SELECT 2147483647 + $1::int', '-p', '1']);
    expect(nowhere.err).toBe('catnap: ERROR: integer out of range (SQLSTATE 22003)\n');
  });
});

describe('computes', () => {
  test('sleep and wake, change their size, log, and are one for each branch', async () => {
    expect((await json('computes suspend')).current_state).toBe('idle');
    expect((await json('computes start main')).current_state).toBe('active');
    expect((await json('computes update --size 0.5-1')).autoscaling_limit_min_cu).toBe(0.5);
    expect(await catnap('computes update')).toMatchObject({
      code: 2,
      err: expect.stringContaining('say what to change'),
    });
    for (const bad of ['--size big', '--suspend-timeout soon']) {
      expect((await catnap(`computes update ${bad}`)).code).toBe(2);
    }
    expect((await catnap('logs --limit 1000')).out).toContain('database system is ready to accept connections');
    expect((await catnap('computes list')).out).toContain('read_write');
    expect((await catnap('computes create')).code).toBe(1);
    const [operation] = await json('operations list --limit 1');
    expect((await json(`operations wait ${operation.id}`)).status).toBe('finished');
  });
});

describe('a linked folder', () => {
  test('names the project, the branch and the database for every command below it', async () => {
    const other = (await json('projects create other')).project.id;
    const inside = join(folder, 'linked', 'deep');
    await mkdir(inside, { recursive: true });
    const linked = join(folder, 'linked');
    await catnap('branches create feature --no-wait --no-compute --project shop');
    expect((await catnap('link shop --branch feature', linked)).code).toBe(0);
    expect(JSON.parse(await readFile(join(linked, '.catnap'), 'utf8'))).toMatchObject({ project: projectId });
    expect((await catnap('branches get', inside)).out).toMatch(/name: +feature/);
    expect((await catnap('branches get --project other', inside)).out).toMatch(/name: +main/);
    const opened = /http\S+(\/projects\/\S+)#open=([\w-]+)/.exec((await catnap('open --print', inside)).out);
    expect(opened?.[1]).toBe(`/projects/${projectId}`);
    expect(await signInWith(opened?.[2] ?? '')).toBe(200);
    expect(await signInWith(opened?.[2] ?? ''), 'a link that was used').toBe(401);
    expect(await catnap('psql --print', inside)).toMatchObject({ code: 1, err: expect.stringContaining('no compute') });
    await writeFile(join(inside, '.catnap'), '{"project": 7}');
    const bad = await catnap('branches get', inside);
    expect(bad).toMatchObject({ code: 2, err: expect.stringContaining('does not link to a project') });
    expect((await catnap('keys list', inside)).code).toBe(0);
    expect((await catnap('link shop', inside)).code).toBe(0);
    await rm(join(inside, '.catnap'));
    expect((await catnap('unlink', inside)).code).toBe(0);
    expect((await catnap('branches get', inside)).code).toBe(2);
    await catnap(`projects delete ${other}`);
  });
});

describe('completion', () => {
  const complete = async (...words: string[]) =>
    (await catnap(['__complete', '--', ...words])).out.split('\n').slice(0, -1);

  test('offers commands, options, choices, and names that the API knows', async () => {
    expect(await complete('bran')).toEqual(['branches']);
    expect(await complete('')).not.toContain('__complete');
    expect(await complete('branches', 're')).toEqual(['rename', 'reset', 'restore']);
    expect(await complete('branches', 'create', '--sc')).toEqual(['--schema-only']);
    expect(await complete('completion', '')).toEqual(['bash', 'fish', 'zsh']);
    expect(await complete('sql', '--project', 'sh')).toEqual(['shop']);
    expect(await complete('branches', 'rename', 'ma')).toEqual(['main']);
    expect(await complete('branches', 'rename', 'main', '')).toEqual([]);
  });

  test('works in a real bash', async () => {
    const { out: script } = await catnap('completion bash');
    const line = `catnap() { "$NODE" "$ENTRY" "$@"; }
      ${script}
      COMP_WORDS=(catnap branches re); COMP_CWORD=2; _catnap; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const entry = fileURLToPath(new URL('../../dist/bin.js', import.meta.url));
    const env = { PATH: process.env.PATH, NODE: process.execPath, ENTRY: entry, CATNAP_HOME: program.home.path };
    expect(execFileSync('bash', ['--norc', '-c', line], { env, encoding: 'utf8' })).toBe('rename\nreset\nrestore\n');
  });

  test('says nothing where the API cannot be asked', async () => {
    const asked = await catnapCommand(['__complete', '--', 'sql', '--project', ''], {});
    expect(asked).toEqual({ code: 0, out: '', err: '' });
  });
});

test('what a person sees of a start and a stop are lines of words', async () => {
  expect(await program.stop()).toBe(0);
  expect(program.output).toMatch(/^ {2}Console +http\S+ {2}\(`.*catnap open` signs you in\)$/m);
  // What it writes to is no terminal.
  expect(program.output).not.toMatch(/napi_|#open=/);
  expect(program.output).toContain('Stopping Catnap');
  expect(program.output).not.toMatch(/^\{|^ +at /m);
});
