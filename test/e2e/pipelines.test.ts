/** A database branch for each git branch, and for each pull request: the hook, and the script of the action. */
import { execFile, execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { startHttpStub } from '../helpers/http-stub.ts';
import { Program } from '../helpers/program.ts';
import { ask } from '../helpers/query.ts';
import { catnapCommand } from '../helpers/run-cli.ts';

const script = fileURLToPath(new URL('../../action/branch.mjs', import.meta.url));
const entry = fileURLToPath(new URL('../../dist/bin.js', import.meta.url));
let program: Program;
let folder: string;
let projectId: string;

beforeAll(async () => {
  program = await Program.create();
  await program.start();
  folder = await mkdtemp(join(tmpdir(), 'catnap-pipelines-'));
  const { body } = await program.api('POST', '/projects', { project: { name: 'shop' } });
  projectId = body.project.id;
  await ask(body.connection_uris[0].connection_uri, 'CREATE TABLE cats (id int)');
});
afterAll(async () => {
  await program.destroy();
  await rm(folder, { recursive: true, force: true });
});

const branchNames = async () => {
  const { body } = await program.api('GET', `/projects/${projectId}/branches`);
  return body.branches.map(({ name }: { name: string }) => name).sort();
};

describe('catnap git', () => {
  let repository: string;
  const git = (...words: string[]) =>
    execFileSync('git', ['-C', repository, ...words], {
      encoding: 'utf8',
      stdio: 'pipe',
      env: {
        PATH: `${join(repository, 'tools')}:${process.env.PATH}`,
        HOME: repository,
        CATNAP_HOME: program.home.path,
        CATNAP_HTTP_PORT: String(program.httpPort),
        GIT_AUTHOR_NAME: 'a',
        GIT_AUTHOR_EMAIL: 'a@example.com',
        GIT_COMMITTER_NAME: 'a',
        GIT_COMMITTER_EMAIL: 'a@example.com',
      },
    });
  const catnap = async (words: string) =>
    catnapCommand(words.split(' '), {
      url: `http://127.0.0.1:${program.httpPort}`,
      home: program.home.path,
      folder: repository,
      command: [process.execPath, entry],
      apiKey: await program.apiKey(),
    });

  beforeAll(async () => {
    repository = join(folder, 'repository');
    await mkdir(join(repository, 'tools'), { recursive: true });
    // The command as a checkout finds it.
    const command = `#!/bin/sh\nexec ${process.execPath} ${entry} "$@"\n`;
    await writeFile(join(repository, 'tools/catnap'), command, { mode: 0o755 });
    git('init', '-q', '-b', 'main');
    git('commit', '-q', '--allow-empty', '-m', 'begin');
  });

  test('makes a branch at each checkout, which commands there then mean, and deletes those whose git branch is gone', async () => {
    expect(await catnap('git install')).toMatchObject({ code: 1, err: expect.stringContaining('catnap link') });
    await catnap('link shop');
    expect(await catnap('git install')).toMatchObject({ code: 0, err: '' });
    git('checkout', '-q', '-b', 'feature/cats');
    expect(await branchNames()).toEqual(['feature/cats', 'main']);
    expect((await catnap('git sync')).out).toMatch(/^found: +br-/);
    expect((await catnap('branches get --json')).out).toContain('"name": "feature/cats"');
    git('checkout', '-q', 'main');
    expect((await catnap('branches get --json')).out).toContain('"name": "main"');
    expect((await catnap('git sync')).out).toMatch(/belongs to the default database branch/);
    git('checkout', '-q', '--detach');
    const unsaid = { code: 1, err: expect.stringContaining('no git branch is checked out') };
    expect(await catnap('branches get')).toMatchObject(unsaid);
    expect(await catnap('sql select')).toMatchObject(unsaid);
    expect((await catnap('branches get main --json')).out).toContain('"name": "main"');
    git('checkout', '-q', 'main');
    expect((await catnap('git prune')).out).toBe('There is nothing to delete.\n');
    git('branch', '-q', '-D', 'feature/cats');
    expect((await catnap('git prune')).out).toMatch(/feature\/cats/);
    expect(await branchNames()).toEqual(['main']);
  });

  test('finds the program that wrote the hook where none is on the path', async () => {
    await rm(join(repository, 'tools/catnap'));
    git('checkout', '-q', '-b', 'feature/dogs');
    expect(await branchNames()).toEqual(['feature/dogs', 'main']);
    git('checkout', '-q', 'main');
    git('branch', '-q', '-D', 'feature/dogs');
    await catnap('git prune');
  });

  test('leaves a hook alone that is not its own', async () => {
    expect((await catnap('git uninstall')).out).toMatch(/^removed: .*post-checkout/);
    expect(await catnap('git uninstall')).toMatchObject({ code: 1 });
    const file = join(repository, '.git/hooks/post-checkout');
    await writeFile(file, '#!/bin/sh\n');
    expect(await catnap('git install')).toMatchObject({ code: 1, err: expect.stringContaining('is not Catnap’s') });
    expect(await readFile(file, 'utf8')).toBe('#!/bin/sh\n');
  });
});

describe('the script of the action', () => {
  async function run(command: string, more: Record<string, string> = {}) {
    const env = {
      PATH: process.env.PATH,
      CATNAP_API_URL: `http://127.0.0.1:${program.httpPort}`,
      CATNAP_PROJECT: 'shop',
      CATNAP_BRANCH: 'pr-7',
      ...more,
    };
    return new Promise<{ code: number; out: string; err: string }>((resolve) => {
      const child = execFile(process.execPath, [script, command], { env }, (_error, out, err) =>
        resolve({ code: child.exitCode ?? 0, out, err }),
      );
    });
  }

  test('makes a branch, comments its schema once, and deletes it, with a key of scope branches', async () => {
    const { body } = await program.api('POST', '/api_keys', { key_name: 'ci', scope: 'branches' });
    const comments: { id: number; body: string }[] = [];
    const github = await startHttpStub(({ method, path, body: sent }) => {
      if (method === 'GET') return { body: comments };
      const text = (sent as { body: string }).body;
      if (method === 'POST') comments.push({ id: 5, body: text });
      else if (path === '/repos/me/shop/issues/comments/5') comments[0] = { id: 5, body: text };
      return { body: {} };
    });
    const output = join(folder, 'output');
    const env = {
      CATNAP_API_KEY: body.key,
      GITHUB_OUTPUT: output,
      GITHUB_API_URL: github.url,
      GITHUB_REPOSITORY: 'me/shop',
      GITHUB_TOKEN: 'token',
      PULL_REQUEST: '7',
    };
    expect(await run('create', env)).toMatchObject({
      code: 0,
      err: '',
      out: expect.stringContaining('made the branch'),
    });
    const given = Object.fromEntries((await readFile(output, 'utf8')).split('\n').map((line) => line.split(/=(.*)/)));
    expect(await ask(given.uri, 'SELECT count(*) FROM cats')).toBe('0');
    expect(await run('create', env)).toMatchObject({ code: 0, out: expect.stringContaining('found the branch') });

    expect(await run('diff', env)).toMatchObject({ code: 0, err: '' });
    expect(comments).toMatchObject([{ body: expect.stringContaining('the same as that of its parent') }]);
    await ask(given.uri, 'ALTER TABLE cats ADD COLUMN name text');
    await ask(given.uri, "COMMENT ON TABLE cats IS '```'");
    expect(await run('diff', env)).toMatchObject({ code: 0, err: '' });
    expect(comments).toHaveLength(1);
    expect(comments[0]?.body).toMatch(/\n````diff\n[\s\S]*\+ +name text[\s\S]*\n````\n$/);
    await github.close();

    expect(await run('delete', env)).toMatchObject({
      code: 0,
      out: expect.stringContaining('deleted the branch pr-7'),
    });
    expect(await run('delete', env)).toMatchObject({ code: 0, out: expect.stringContaining('no such branch') });
    expect(await branchNames()).toEqual(['main']);
  });

  test('goes on with a branch whose maker ended before it came to the password', async () => {
    const { body } = await program.api('POST', '/api_keys', { key_name: 'again', scope: 'branches' });
    const env = { CATNAP_API_KEY: body.key, CATNAP_BRANCH: 'pr-8', CATNAP_DOTENV: join(folder, 'again') };
    const lost = await run('create', { ...env, CATNAP_DATABASE: 'none' });
    expect(lost).toMatchObject({ code: 1, err: 'catnap: the branch has no database none\n' });
    expect(await run('create', env)).toMatchObject({ code: 0, err: '' });
    const [, uri = ''] = /DATABASE_URL='(.*)'/.exec(await readFile(env.CATNAP_DOTENV, 'utf8')) ?? [];
    expect(await ask(uri, 'SELECT count(*) FROM cats')).toBe('0');
    expect(await run('delete', env)).toMatchObject({ code: 0 });
  });

  test('says what is wrong', async () => {
    const key = { CATNAP_API_KEY: await program.apiKey() };
    expect(await run('build', key)).toMatchObject({ code: 1, err: 'catnap: say what to do: create, diff, delete\n' });
    expect(await run('create')).toMatchObject({ code: 1, err: 'catnap: CATNAP_API_KEY is not set\n' });
    expect(await run('diff', key)).toMatchObject({
      code: 1,
      err: 'catnap: there is no branch pr-7: create it first\n',
    });
    const nowhere = await run('create', { ...key, CATNAP_PROJECT: 'The Shop' });
    expect(nowhere).toMatchObject({ code: 1, err: expect.stringContaining('CATNAP_PROJECT must be') });
    const lost = await run('create', { ...key, CATNAP_PARENT: 'none' });
    expect(lost).toMatchObject({ code: 1, err: 'catnap: there is no branch none to make it from\n' });
  });

  test('gets from action.yml, and from the example for GitLab, what it reads', async () => {
    const read = (path: string) => readFile(fileURLToPath(new URL(`../../${path}`, import.meta.url)), 'utf8');
    const names = [...(await read('action/branch.mjs')).matchAll(/\b(?:env\.|required\(')(CATNAP_\w+)/g)];
    const { runs, inputs } = parse(await read('action/action.yml'));
    const { env } = runs.steps[0];
    for (const [, name = ''] of names) {
      if (name !== 'CATNAP_DOTENV') expect(Object.keys(env)).toContain(name);
    }
    const used = [...JSON.stringify(runs).matchAll(/inputs\.([\w-]+)/g)].map(([, name]) => name);
    expect(new Set(used)).toEqual(new Set(Object.keys(inputs)));
    const examples = [...(await read('docs/pipelines.md')).matchAll(/```yaml\n([\s\S]*?)```/g)];
    expect(examples).toHaveLength(2);
    for (const [, text = ''] of examples) expect(parse(text)).toBeTypeOf('object');
  });
});
