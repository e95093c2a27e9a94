/**
 * The published command lines, unmodified: every command that has a meaning here, and what they print for the others.
 * A command takes a second of computing to start, so a normal run shares them out: the oldest version runs what all
 * have, the newest what came since, the one between them a few. `CATNAP_TEST_CLIS=all` runs everything with each.
 */
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CliTools, walkAuth, walkInspections } from '../helpers/cli-walks.ts';
import { type ForeignCli, foreignClis, foreignModules, hasForeignClis, runCli } from '../helpers/foreign.ts';
import { commandOf, foreignClient, runOf } from '../helpers/foreign-clients.ts';
import { Program } from '../helpers/program.ts';
import { ask } from '../helpers/query.ts';

const isWhole = process.env.CATNAP_TEST_CLIS === 'all';
const timeout = 600_000;
const hasPsql = (process.env.PATH ?? '').split(delimiter).some((folder) => existsSync(join(folder, 'psql')));
let program: Program;
let options: { readonly apiHost: string; readonly apiKey: string };

beforeAll(async () => {
  if (!hasForeignClis) return;
  program = await Program.create();
  await program.start();
  options = { apiHost: `http://127.0.0.1:${program.httpPort}/api/v2`, apiKey: await program.apiKey() };
});
afterAll(() => program?.destroy());

// Whole walks one after another: three at once would ask for more schemas at a time than an installation reads.
describe.skipIf(!hasForeignClis).each(foreignClis)('$name $version', { concurrent: !isWhole }, (cli) => {
  it('does what has a meaning here', { timeout }, async () => {
    const folder = await mkdtemp(join(tmpdir(), 'cn-neon-cli-'));
    const tools = toolsOf(cli, folder);
    try {
      const id = await makeProject(tools);
      if (cli.isOldest || isWhole) await walkCommon(tools, id);
      if (!cli.isOldest) await walkStatus(tools, id);
      if (cli.isNewest || (!cli.isOldest && isWhole)) await walkNew(tools, id);
      await tools.run(`projects delete ${id}`);
      expect((await program.api('GET', `/projects/${id}`)).status).toBe(404);
      if (cli.isOldest || cli.isNewest || isWhole) {
        await tools.run(`projects recover ${id}`);
        expect((await program.api('GET', `/projects/${id}`)).status).toBe(200);
      }
      const left = runOf(foreignClient(cli.name, cli.version)).filter((name) => !tools.called.has(name));
      if (isWhole) expect(left).toEqual(hasPsql ? [] : ['psql']);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });
});

function toolsOf(cli: ForeignCli, folder: string): CliTools {
  const called = new Set<string>();
  const listed = foreignClient(cli.name, cli.version);
  const run = (words: string, env: Record<string, string> = {}) => {
    called.add(commandOf(listed, words));
    return runCli(cli, { ...options, folder, env }, words.split(' '));
  };
  const json = async (words: string) => JSON.parse(await run(`${words} --output json`));
  return {
    program,
    isWhole,
    cli,
    folder,
    called,
    run,
    json,
    names: async (words) => (await json(words)).map(({ name }: { name: string }) => name).sort(),
    refusal: async (words) =>
      run(words).then(
        () => `${words} succeeded`,
        (error: { stderr: string }) => error.stderr,
      ),
  };
}

/** The account, and the project that everything else belongs to. */
async function makeProject({ cli, folder, run, json }: CliTools): Promise<string> {
  const [me, [org]] = await Promise.all([json('me'), json('orgs list')]);
  expect(me.login).toBe('admin');
  const { id } = (await json(`projects create --name made --org-id ${org.id}`)).project;
  await run(`link --project-id ${id} --org-id ${org.id}${cli.isOldest ? ' --branch main' : ''}`);
  expect(JSON.parse(await readFile(join(folder, '.neon'), 'utf8'))).toMatchObject({ projectId: id });
  return id;
}

/** What all versions have. */
async function walkCommon({ folder, run, json, names, refusal }: CliTools, id: string): Promise<void> {
  expect((await json(`projects update ${id} --name ours`)).name).toBe('ours');
  const [listed, got] = await Promise.all([json('projects list'), json(`projects get ${id}`)]);
  expect(listed.map((project: { id: string }) => project.id)).toContain(id);
  expect(got.name).toBe('ours');

  await run('roles create --name reader');
  await run('databases create --name shop --owner-name reader');
  const [roles, databases, string] = await Promise.all([
    names('roles list'),
    names('databases list'),
    run('connection-string main --role-name reader --database-name shop --pooled'),
  ]);
  expect([roles, databases]).toEqual([
    ['neondb_owner', 'reader'],
    ['neondb', 'shop'],
  ]);
  const asked = `database_name=shop&role_name=reader&pooled=true`;
  const { body } = await program.api('GET', `/projects/${id}/connection_uri?${asked}`);
  const printed = new URL(string.trim());
  expect([printed.username, printed.password, printed.pathname]).toEqual([
    'reader',
    new URL(body.uri).password,
    '/shop',
  ]);
  expect(await ask(body.uri, 'select current_user')).toBe('reader');
  await run('databases delete shop');
  await run('roles delete reader');
  expect((await program.api('GET', `/projects/${id}/branches`)).body.branches).toHaveLength(1);

  const dev = (await json('branches create --name dev')).connection_uris[0].connection_uri;
  await ask(dev, 'create table only_here (a int)');
  expect(await run('branches schema-diff main dev')).toContain('+CREATE TABLE public.only_here');
  await run('branches rename dev next');
  await run('branches set-default next');
  expect((await json('branches get next')).default).toBe(true);
  await run('branches reset next --parent');
  await program.settle(id);
  expect(await ask(dev, `select to_regclass('only_here') is null`)).toBe('true');
  await run('branches restore next main');
  await run('branches create --name bare --no-compute');
  await run(`branches set-expiration bare --expires-at ${tomorrow()}T00:00:00Z`);
  expect((await json('branches add-compute bare --type read_write')).type).toBe('read_write');
  await run('branches delete bare');
  await program.settle(id);
  const [branches, operations] = await Promise.all([names('branches list'), json('operations list')]);
  expect(branches).toEqual(['main', 'next']);
  expect(operations.length).toBeGreaterThan(5);

  await run('ip-allow add 192.0.2.1');
  expect((await program.api('GET', `/projects/${id}`)).body.project.settings.allowed_ips.ips).toEqual(['192.0.2.1']);
  await run('ip-allow add 192.0.2.2');
  await run('ip-allow remove 192.0.2.1');
  expect(await run('ip-allow list')).toMatch(/192\.0\.2\.2/);
  await run('ip-allow reset');
  await run('checkout next');
  expect(JSON.parse(await readFile(join(folder, '.neon'), 'utf8'))).toMatchObject({ projectId: id });
  await run(`set-context --project-id ${id}`);
  await program.settle(id);
  // The hostname that it connects to resolves on few machines; the variable says where it is.
  if (hasPsql) expect(await run('psql main -- -Atc select(41+1)', { PGHOSTADDR: '127.0.0.1' })).toBe('42\n');
  expect(await refusal('branches restore next main@2026-01-01T00:00:00Z')).toMatch(/timestamp/);
}

/** These look at everything that a branch has, and stop at anything that they cannot make sense of. */
async function walkStatus({ folder, run, json }: CliTools, id: string): Promise<void> {
  expect(await run('status')).toContain(id);
  expect((await json('config status')).branch).toMatchObject({ name: expect.stringMatching(/^(main|next)$/) });
  await run('env pull --file .env.pulled');
  const uri = /^DATABASE_URL_UNPOOLED="(.+)"$/m.exec(await readFile(join(folder, '.env.pulled'), 'utf8'))?.[1] ?? '';
  expect(await ask(uri, 'select current_database()')).toBe('neondb');
}

/** What came with the fifth version. */
async function walkNew(tools: CliTools, id: string): Promise<void> {
  const { run, json, refusal } = tools;
  await walkPolicy(tools, id);
  await walkSchema(tools);
  await walkSnapshots(tools, id);
  const key = await json('api-keys create --name second');
  expect((await json('api-keys list')).map(({ name }: { name: string }) => name)).toContain('second');
  await run(`api-keys revoke ${key.id}`);
  await walkAuth(tools, id);
  const [direct, ...lists] = await Promise.all([
    run(`api /projects/${id}`),
    json('functions list'),
    json('triggers list'),
    json('buckets list'),
  ]);
  expect(JSON.parse(direct).project.id).toBe(id);
  expect(lists).toEqual([[], [], []]);
  const refused = ['credentials list', 'buckets create photos', 'logs fields', 'vpc project list'];
  for (const words of refused) {
    expect([words, await refusal(words)]).toEqual([words, expect.stringContaining('not offered by Catnap')]);
  }
}

/** A policy in a file, which the branch is compared with and changed to. */
async function walkPolicy({ folder, run }: CliTools, id: string): Promise<void> {
  await symlink(foreignModules, join(folder, 'node_modules'));
  const policy = `{ branch: () => ({ postgres: { computeSettings: { suspendTimeout: '10m' } } }) }`;
  const text = `import { defineConfig } from '@neon/config/v1';\nexport default defineConfig(${policy});\n`;
  await writeFile(join(folder, 'neon.ts'), text);
  const timeouts = async () =>
    (await program.api('GET', `/projects/${id}/endpoints`)).body.endpoints.map(
      (endpoint: { suspend_timeout_seconds: number }) => endpoint.suspend_timeout_seconds,
    );
  expect(await run('config plan')).toContain('suspendTimeout');
  expect(await timeouts()).not.toContain(600);
  await run('config apply --update-existing');
  expect(await timeouts()).toContain(600);
  await rm(join(folder, 'neon.ts'));
}

/** Commands that look into databases. */
async function walkSchema(tools: CliTools): Promise<void> {
  const { run, json } = tools;
  const uri = (await json('branches create --name changed')).connection_uris[0].connection_uri;
  await ask(uri, 'create table only_there as select generate_series(1, 1000) as a');
  expect(await run('diff main --branch changed')).toContain('only_there');
  await walkInspections(tools, uri);
}

/** What is taken of a branch, and brought back to it. */
async function walkSnapshots({ cli, run, json, names }: CliTools, id: string): Promise<void> {
  const uri = (await json('branches create --name shop')).connection_uris[0].connection_uri;
  await ask(uri, "create table orders as select 'kept' as state");
  // Older command lines cannot name the slug.
  const slug = cli.isNewest ? ' --slug monday-1' : '';
  const taken = await json(`snapshots create --branch shop --name monday${slug} --expires-at ${tomorrow()}`);
  expect(taken).toMatchObject({ name: 'monday', expires_at: `${tomorrow()}T00:00:00Z` });
  expect(taken.slug).toBe(cli.isNewest ? 'monday-1' : taken.id);
  await program.settle(id);
  await ask(uri, 'drop table orders');
  expect((await json(`snapshots update ${taken.slug} --name tuesday --clear-expiration`)).expires_at).toBeUndefined();
  expect((await json('snapshots get tuesday')).id).toBe(taken.id);
  await run('snapshots restore tuesday --name looked-at');
  await program.settle(id);
  await run('snapshots finalize looked-at --name shop-old');
  await program.settle(id);
  expect(await ask(uri, 'select state from orders')).toBe('kept');
  expect(await names('branches list')).toEqual(expect.arrayContaining(['shop', 'shop-old']));
  await run('snapshots schedule set --branch shop --frequency daily --hour 3 --retention 604800');
  expect(await json('snapshots schedule get --branch shop')).toEqual([
    { frequency: 'daily', hour: 3, retention_seconds: 604_800 },
  ]);
  await run('snapshots delete tuesday');
  expect(await json('snapshots list')).toEqual([]);
}

const tomorrow = () => new Date(Date.now() + 24 * 3_600_000).toISOString().slice(0, 10);
