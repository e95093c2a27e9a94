/** Walks through commands of the published command lines that have a subject of their own: auth, and inspections. */
import { join } from 'node:path';
import pg from 'pg';
import { expect } from 'vitest';
import { eventually } from './eventually.ts';
import { type ForeignCli, foreignModules } from './foreign.ts';
import type { Program } from './program.ts';
import { ask } from './query.ts';

/** What a walk through the commands of one command line needs. */
export interface CliTools {
  readonly program: Program;
  /** Everything, and not only what a normal run has time for. */
  readonly isWhole: boolean;
  readonly cli: ForeignCli;
  readonly folder: string;
  /** The names of the commands that ran. */
  readonly called: Set<string>;
  readonly run: (words: string, env?: Record<string, string>) => Promise<string>;
  // biome-ignore lint/suspicious/noExplicitAny: what a program prints.
  readonly json: (words: string) => Promise<any>;
  readonly names: (words: string) => Promise<string[]>;
  /** What a command that must fail prints. */
  readonly refusal: (words: string) => Promise<string>;
}

const nothing = /^\[\]$/;

/** What each of them finds; some find nothing, which is right for a server without trouble. */
const inspections: Record<string, RegExp> = {
  'table-sizes': /only_there/,
  'index-sizes': /by_a/,
  'unused-indexes': /by_a/,
  'seq-scans': /only_there/,
  'long-running-queries': nothing,
  'stalled-queries': nothing,
  locks: /AccessExclusiveLock/,
  outliers: /as longest/,
  calls: /as counted/,
  'vacuum-stats': /only_there/,
  bloat: /only_there/,
  // Catnap's own, once there is a history of the branch.
  'replication-slots': /^\[(\{"slot_name":"catnap_history".*)?\]$/,
  subscriptions: nothing,
};

/** They differ in their SQL alone, so a normal run starts the program for one of them and runs the SQL of all. */
export async function walkInspections({ json, refusal, isWhole }: CliTools, uri: string): Promise<void> {
  const [client, looker] = [new pg.Client({ connectionString: uri }), new pg.Client({ connectionString: uri })];
  await Promise.all([client.connect(), looker.connect()]);
  try {
    const longest = 'select count(*) as longest from only_there, generate_series(1, 1000)';
    const prepare = ['create extension pg_stat_statements', 'create index by_a on only_there (a)', 'analyze', longest];
    for (const text of [...prepare, ...Array.from({ length: 30 }, () => 'select 1 as counted')]) {
      await client.query(text);
    }
    await client.query('begin; create table not_yet ()');
    const { INSPECT_QUERIES: queries } = await import(join(foreignModules, 'neon/dist/utils/inspect_queries.js'));
    for (const [name, expected] of Object.entries(inspections)) {
      // A branch that is being made has a replication slot in its source for a while.
      await eventually(async () => {
        const { rows } = await looker.query(queries[name].sql);
        expect([name, JSON.stringify(rows)]).toEqual([name, expect.stringMatching(expected)]);
      });
    }
    for (const [name, expected] of Object.entries(inspections).slice(0, isWhole ? undefined : 1)) {
      await eventually(async () => {
        const found = JSON.stringify(await json(`inspect db ${name} --db-url ${uri}`));
        expect([name, found]).toEqual([name, expect.stringMatching(expected)]);
      });
    }
  } finally {
    await Promise.all([client.end(), looker.end()]);
  }
  for (const name of isWhole ? ['lfc-hit-rate', 'working-set'] : []) {
    expect(await refusal(`inspect db ${name} --db-url ${uri}`)).toContain('needs the "neon" extension');
  }
}

/**
 * On an integration of the embedded provider, which the command line cannot make: it asks for another. A normal run
 * leaves out what only looks or takes away.
 */
export async function walkAuth(tools: CliTools, id: string): Promise<void> {
  const { program, run, refusal } = tools;
  expect(await run('neon-auth status')).toContain('not configured');
  expect(await refusal('neon-auth enable')).toContain('auth_provider must be one of stack');
  const { branches } = (await program.api('GET', `/projects/${id}/branches`)).body;
  const branch = branches.find((each: { default: boolean }) => each.default);
  const order = { auth_provider: 'stack', project_id: id, branch_id: branch.id };
  const { status, body } = await program.api('POST', '/projects/auth/create', order);
  expect(status).toBe(201);
  await program.settle(id);
  const place = { path: `/projects/${id}/branches/${branch.id}/auth`, at: `--branch ${branch.name}` };
  await walkDomains(tools, place);
  await walkOauthProviders(tools, place);
  const asked = 'database_name=neondb&role_name=neondb_owner';
  const { uri } = (await program.api('GET', `/projects/${id}/connection_uri?${asked}`)).body;
  await walkUsers(tools, place, uri);
  await run(`neon-auth disable --delete-data ${place.at}`);
  await program.settle(id);
  expect((await program.api('GET', place.path)).status).toBe(404);
  expect(body.auth_provider).toBe('stack');
}

interface Place {
  readonly path: string;
  readonly at: string;
}

async function walkDomains({ program, isWhole, run, json, refusal }: CliTools, { path, at }: Place): Promise<void> {
  const domain = 'https://app.example.com';
  const listed = [{ auth_provider: 'stack', domain }];
  await run(`neon-auth domain add ${domain} ${at}`);
  expect((await program.api('GET', `${path}/domains`)).body.domains).toEqual(listed);
  if (!isWhole) return;
  expect(await json(`neon-auth domain list ${at}`)).toMatchObject(listed);
  await run(`neon-auth domain delete ${domain} ${at}`);
  expect((await program.api('GET', `${path}/domains`)).body.domains).toEqual([]);
  for (const word of ['get', 'enable', 'disable']) {
    expect(await refusal(`neon-auth domain allow-localhost ${word} ${at}`)).toContain('not offered by Catnap');
  }
}

async function walkOauthProviders(
  { program, isWhole, run, json, refusal }: CliTools,
  { path, at }: Place,
): Promise<void> {
  const github = `--provider-id github ${at}`;
  const own = (client: string) => `--oauth-client-id ${client} --oauth-client-secret secret`;
  const listed = async () => (await program.api('GET', `${path}/oauth_providers`)).body.providers;
  await run(`neon-auth oauth-provider add ${github} ${own('one')}`);
  expect(await listed()).toMatchObject([{ id: 'github', client_id: 'one' }]);
  if (!isWhole) return;
  expect(await refusal(`neon-auth oauth-provider add --provider-id google ${at}`)).toContain('client_id');
  await run(`neon-auth oauth-provider update ${github} ${own('two')}`);
  expect(await json(`neon-auth oauth-provider list ${at}`)).toMatchObject([{ id: 'github', client_id: 'two' }]);
  await run(`neon-auth oauth-provider delete ${github}`);
  expect(await listed()).toEqual([]);
}

async function walkUsers({ isWhole, run, refusal }: CliTools, { at }: Place, uri: string): Promise<void> {
  const made = await run(`neon-auth user create --email ann@example.com --name Ann ${at}`);
  const userId = /ID:\s+(\S+)/.exec(made)?.[1];
  const users = (where: string) => ask(uri, `select string_agg(name, ',') from neon_auth.users_sync where ${where}`);
  await eventually(async () => expect(await users('deleted_at is null')).toBe('Ann'));
  if (!isWhole) return;
  const refused = await refusal(`neon-auth user set-role ${userId} --roles admin ${at}`);
  expect(refused).toContain('not offered by Catnap');
  await run(`neon-auth user delete ${userId} ${at}`);
  await eventually(async () => expect(await users('deleted_at is not null')).toBe('Ann'));
}
