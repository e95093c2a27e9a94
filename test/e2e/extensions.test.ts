/** pgvector from the machine's packages, through the front door. Skipped where there is none that would load here. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { locateEmbedded } from '../../src/compute/local/host/postgres/builds.ts';
import { whyNotLoadable } from '../../src/compute/local/host/postgres/library-check.ts';
import { extensionFoldersOf } from '../../src/compute/local/host/postgres/machine-extensions.ts';
import { Program } from '../helpers/program.ts';
import { ask } from '../helpers/query.ts';

const count = Number(process.env.CATNAP_TEST_VECTORS ?? 5_000);
const patienceMs = 600_000;

const majors = await Promise.all(
  [17, 18].map(async (major) => {
    const files = extensionFoldersOf(major, { roots: {} }).map(({ libraries }) => join(libraries, 'vector.so'));
    const library = files.find((file) => existsSync(file));
    if (library === undefined) return { major, isHere: false };
    return { major, isHere: (await whyNotLoadable(join(locateEmbedded(major), 'bin/postgres'), library)) === null };
  }),
);

describe.skipIf(majors.every(({ isHere }) => !isHere))('pgvector', () => {
  let program: Program;
  beforeAll(async () => {
    // A new build removes old ones, which other tests may be using.
    program = await Program.create({ CATNAP_EXTENSIONS_17: '/', CATNAP_EXTENSIONS_18: '/' }, { ownBuilds: true });
    await program.start();
  }, patienceMs);
  afterAll(() => program.destroy());

  describe.each(majors)('on Postgres $major (on Debian 13: apt-get install postgresql-$major-pgvector)', (one) => {
    const { major, isHere } = one;
    it.skipIf(!isHere)(
      'an index outlives sleep, and is in branches, replicas and restored data',
      async () => {
        const { body } = await program.api('POST', '/projects', { project: { pg_version: major } });
        const [projectId, rootId] = [body.project.id, body.branch.id];
        const [endpointId, uri] = [body.endpoints[0].id, body.connection_uris[0].connection_uri];
        const uriOf = (id: string) => uri.replaceAll(endpointId, id);
        await program.settle(projectId);
        const listed = (await program.api('GET', `/projects/${projectId}/extensions`)).body.extensions;
        expect(listed.find(({ name }: { name: string }) => name === 'vector')).toMatchObject({ offered: true });

        await ask(uri, 'create extension vector');
        await ask(uri, 'create table items (id int primary key, v vector(16))');
        await ask(
          uri,
          `insert into items select id, (select array_agg(sin(id * k)) from generate_series(1, 16) k)::vector
        from generate_series(1, ${count}) id`,
        );
        await ask(uri, 'create index by_distance on items using hnsw (v vector_l2_ops)');
        await ask(uri, 'alter database neondb set enable_seqscan = off');
        await ask(uri, 'alter database neondb set enable_sort = off');
        const expected = await nearest(uri);
        expect(expected.split(',')).toHaveLength(5);

        await program.api('POST', `/projects/${projectId}/endpoints/${endpointId}/suspend`);
        await program.settle(projectId);
        expect(await nearest(uri)).toBe(expected);

        const made = await program.api('POST', `/projects/${projectId}/branches`, {
          branch: { name: 'dev' },
          endpoints: [{ type: 'read_write' }, { type: 'read_only' }],
        });
        await program.settle(projectId, patienceMs);
        for (const { id } of made.body.endpoints) expect(await nearest(uriOf(id))).toBe(expected);
        await ask(uriOf(made.body.endpoints[0].id), 'insert into items select 0, v from items where id = 42');
        expect((await nearest(uriOf(made.body.endpoints[0].id))).split(',')).toContain('0');

        const at = await ask(
          uri,
          `select to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`,
        );
        await ask(uri, 'drop table items');
        const restore = { source_branch_id: rootId, source_timestamp: at, preserve_under_name: 'emptied' };
        const reply = await program.api('POST', `/projects/${projectId}/branches/${rootId}/restore`, restore);
        expect(reply.status).toBe(200);
        await program.settle(projectId, patienceMs);
        expect(await nearest(uri)).toBe(expected);
        expect(await ask(uri, 'select count(*) from items')).toBe(String(count));
      },
      patienceMs,
    );
  });
});

/** The five nearest neighbours of one of them, by the index. */
async function nearest(uri: string): Promise<string> {
  const vector = await ask(uri, 'select v from items where id = 42');
  const query = `select id from items order by v <-> '${vector}' limit 5`;
  expect(JSON.stringify(await readRows(uri, `explain ${query}`))).toContain('by_distance');
  return ask(uri, `select string_agg(id::text, ',' order by id) from (${query}) n`);
}

async function readRows(uri: string, text: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: uri });
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}
