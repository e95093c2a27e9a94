/** A database of one real server is copied into another one, by roles that are no superusers there. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type PlainPostgres, startPlainPostgres } from '../../test/helpers/plain-postgres.ts';
import { ask } from '../../test/helpers/query.ts';
import { copyDatabase, forgetCopy } from './copy.ts';
import type { CopyProgress } from './progress.ts';
import { makeServerSettings } from './server-roles.ts';

/** Binaries of another major to copy from, as CONTRIBUTING.md says. */
const sourceBin = process.env.CATNAP_TEST_SOURCE_BIN;
const sourceMajor = sourceBin === undefined ? 17 : majorOf(sourceBin);
let source: PlainPostgres;
let target: PlainPostgres;
const importer = { name: 'importer', password: 'importer secret' };

beforeAll(async () => {
  [source, target] = await Promise.all([
    startPlainPostgres(sourceMajor, { settings: { wal_level: 'logical' }, bin: sourceBin }),
    startPlainPostgres(18),
  ]);
  await ask(target.url(), `CREATE ROLE importer LOGIN CREATEROLE CREATEDB PASSWORD '${importer.password}'`);
});
afterAll(async () => {
  await Promise.all([source?.stop(), target?.stop()]);
});

function majorOf(bin: string): number {
  return Number(/\d+/.exec(execFileSync(join(bin, 'postgres'), ['--version'], { encoding: 'utf8' }))?.[0]);
}

/** A database on each side, the one in the target owned by the role that copies. */
async function makePair(name: string): Promise<{ readonly from: string; readonly to: string }> {
  await ask(source.url(), `CREATE DATABASE ${name}`);
  await ask(target.url(), `CREATE DATABASE ${name} OWNER importer`);
  return { from: source.url(name), to: target.url(name, importer) };
}

async function run(url: string, ...statements: readonly string[]): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    for (const text of statements) await client.query(text);
  } finally {
    await client.end();
  }
}

async function rowsOf(url: string, text: string): Promise<unknown[][]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query({ text, rowMode: 'array' })).rows;
  } finally {
    await client.end();
  }
}

const shop = [
  `CREATE ROLE clerk LOGIN PASSWORD 'clerk secret'`,
  'CREATE ROLE readers NOLOGIN',
  `CREATE ROLE guest LOGIN PASSWORD 'guest secret' IN ROLE readers`,
  'CREATE SCHEMA stock AUTHORIZATION clerk',
  `CREATE TYPE stock.size AS ENUM ('small', 'grand "large"')`,
  `CREATE TABLE "Größe" (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, "a b" text, at timestamptz, n numeric,
     twice numeric GENERATED ALWAYS AS (n * 2) STORED, raw bytea, data jsonb, tags text[], f float8)`,
  `INSERT INTO "Größe" ("a b", at, n, raw, data, tags, f)
     SELECT E'tab\\t line\\n back\\\\slash \\u00e9 ' || i, timestamptz '2026-01-31 12:00:00.123456+00' + i * interval '1 s',
            i / 3.0, decode('00ff0a5c', 'hex'), jsonb_build_object('i', i, 'n', null), ARRAY['x,y', NULL, '"'], i / 7.0
       FROM generate_series(1, 5000) i`,
  'CREATE TABLE stock.items (id serial PRIMARY KEY, of int REFERENCES "Größe", size stock.size, price int CHECK (price > 0))',
  'ALTER TABLE stock.items OWNER TO clerk',
  `INSERT INTO stock.items (of, size, price) SELECT 1 + i % 5000, 'small', i FROM generate_series(1, 300) i`,
  'CREATE TABLE days (day int, what text) PARTITION BY RANGE (day)',
  'CREATE TABLE days_1 PARTITION OF days FOR VALUES FROM (0) TO (10)',
  'CREATE TABLE days_2 PARTITION OF days FOR VALUES FROM (10) TO (20)',
  `INSERT INTO days SELECT i, 'day ' || i FROM generate_series(0, 19) i`,
  'CREATE VIEW cheap AS SELECT id FROM stock.items WHERE price < 10',
  'CREATE MATERIALIZED VIEW sums AS SELECT size, sum(price) FROM stock.items GROUP BY size',
  'CREATE UNIQUE INDEX ON sums (size)',
  'CREATE SEQUENCE counter START 7',
  `SELECT setval('counter', 4711)`,
  `CREATE FUNCTION seen() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
--
/*

ALTER TABLE x OWNER TO nobody;

*/
     NEW.what := NEW.what || ' seen'; RETURN NEW; END $$`,
  'CREATE TRIGGER look BEFORE INSERT ON days_1 FOR EACH ROW WHEN (NEW.day = 5) EXECUTE FUNCTION seen()',
  'GRANT SELECT ON "Größe" TO readers',
  'ALTER TABLE stock.items ENABLE ROW LEVEL SECURITY',
  'CREATE POLICY mine ON stock.items FOR SELECT TO readers, postgres USING (price > 1)',
  'CREATE POLICY theirs ON stock.items FOR SELECT TO postgres USING (true)',
  'ALTER DEFAULT PRIVILEGES FOR ROLE clerk IN SCHEMA stock GRANT SELECT ON TABLES TO readers',
  'CREATE EXTENSION pg_trgm',
  `CREATE INDEX ON "Größe" USING gin ("a b" gin_trgm_ops)`,
  `COMMENT ON TABLE days IS 'it''s a day'`,
];

const locks = `SELECT objid::text AS id FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1`;

/** The same question on both sides. */
const content = [
  'SELECT md5(string_agg(t::text, chr(10) ORDER BY id)) FROM "Größe" t',
  'SELECT md5(string_agg(t::text, chr(10) ORDER BY id)) FROM stock.items t',
  'SELECT md5(string_agg(t::text, chr(10) ORDER BY day)) FROM days t',
  'SELECT * FROM sums',
  'SELECT last_value, is_called FROM counter',
  `SELECT nextval('stock.items_id_seq')`,
  `SELECT obj_description('days'::regclass)`,
  `SELECT prosrc FROM pg_proc WHERE proname = 'seen'`,
  `SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace IN ('public'::regnamespace,
     'stock'::regnamespace) AND contype <> 'n' ORDER BY 1`,
  `SELECT indexname, indexdef FROM pg_indexes WHERE schemaname IN ('public', 'stock') ORDER BY 1`,
];

test('everything comes along: rows to the last digit, and who owns and may what', async () => {
  const { from, to } = await makePair('shop');
  await run(from, ...shop);
  const told: CopyProgress[] = [];
  const report = await copyDatabase({ source: from, target: to, method: 'copy' }, (progress) => told.push(progress));
  expect(report).toMatchObject({ tables: 4, rows: 5320, isResumed: false, method: 'copy', notes: [] });
  for (const text of content) expect([text, await rowsOf(to, text)]).toEqual([text, await rowsOf(from, text)]);
  expect([...new Set(told.map(({ phase }) => phase))]).toEqual([
    'check',
    'structure',
    'rows',
    'indexes',
    'views',
    'rules',
    'finish',
  ]);
  expect(told.filter(({ phase }) => phase === 'rows').map(({ done, of }) => [done, of])).toContainEqual([3, 4]);

  const admin = target.url('shop');
  const owners = `SELECT relname, relowner::regrole::text FROM pg_class WHERE relname IN ('items', 'days', 'items_id_seq')
    UNION SELECT nspname, nspowner::regrole::text FROM pg_namespace WHERE nspname = 'stock' ORDER BY 1`;
  expect(await rowsOf(admin, owners)).toEqual([
    ['days', 'importer'],
    ['items', 'clerk'],
    ['items_id_seq', 'clerk'],
    ['stock', 'clerk'],
  ]);
  const policies = `SELECT polname, ARRAY(SELECT r::regrole::text FROM unnest(polroles) r ORDER BY 1)::text
    FROM pg_policy ORDER BY 1`;
  expect(await rowsOf(admin, policies)).toEqual([
    ['mine', '{importer,readers}'],
    ['theirs', '{importer}'],
  ]);
  expect(await ask(admin, `SELECT to_regnamespace('catnap_import') IS NULL`)).toBe('true');
  // Rights come along: until Postgres 15 everybody could create in `public`.
  expect(await ask(admin, `SELECT has_schema_privilege('clerk', 'public', 'CREATE')`)).toBe(String(sourceMajor < 15));
  // With the passwords that they had.
  const guest = target.url('shop', { name: 'guest', password: 'guest secret' });
  expect(await ask(guest, 'SELECT count(*) FROM "Größe"')).toBe('5000');
  const clerk = target.url('shop', { name: 'clerk', password: 'clerk secret' });
  await run(clerk, 'CREATE TABLE stock.more (id int)');
  expect(await ask(admin, `SELECT has_table_privilege('guest', 'stock.more', 'SELECT')`)).toBe('true');
  await run(to, `INSERT INTO days VALUES (5, 'new')`);
  expect(await ask(to, `SELECT what FROM days WHERE what LIKE 'new%'`)).toBe('new seen');
});

test('who may not read passwords of the source brings roles without', async () => {
  const { from, to } = await makePair('modest');
  await run(from, `CREATE ROLE modest LOGIN PASSWORD 'modest secret'`, 'ALTER DATABASE modest OWNER TO modest');
  const as = { name: 'modest', password: 'modest secret' };
  await run(
    from,
    `CREATE ROLE buyer LOGIN PASSWORD 'x'`,
    'CREATE TABLE public.t (id int)',
    'ALTER TABLE t OWNER TO modest',
  );
  await run(from, 'GRANT SELECT ON t TO buyer', 'INSERT INTO t VALUES (1)');
  await run(from, 'CREATE TABLE old (id int)', 'GRANT ALL ON old TO modest', 'GRANT SELECT ON old TO buyer');
  const { notes } = await copyDatabase({ source: source.url('modest', as), target: to });
  expect(notes).toEqual(['role buyer has no password yet: the source does not show it']);
  expect(await ask(to, `SELECT has_table_privilege('buyer', 't', 'SELECT')`)).toBe('true');
  // It was the first superuser's.
  expect(await ask(to, `SELECT tableowner FROM pg_tables WHERE tablename = 'old'`)).toBe('importer');
});

describe('before anything is written it is refused', () => {
  const refusal = (request: { readonly source?: string; readonly target?: string }) =>
    copyDatabase({ source: source.url(), target: target.url('postgres', importer), ...request }).then(
      () => 'it was copied',
      (error: Error) => error.message,
    );

  test('for URLs that are none, without a word of the password', async () => {
    for (const url of ['localhost', 'http://a:hunter2@h/d', 'postgresql://a:hunter2@h', 'postgresql:///d']) {
      const message = await refusal({ source: url });
      expect(message).toContain('the URL of the source must have the form postgresql://');
      expect(message).not.toContain('hunter2');
    }
    expect(await refusal({ target: `${target.url()}?sslmode=maybe` })).toBe(
      'sslmode in the URL of the target must be one of disable, prefer, require, verify-full',
    );
    expect(await refusal({ source: source.url('nowhere') })).toMatch(
      /^the source cannot be .*"nowhere" does not exist/,
    );
    const wrong = source.url('postgres', { name: 'postgres', password: 'wrong' });
    expect(await refusal({ source: wrong })).toMatch(/^the source cannot be .*password authentication failed/);
    expect(await refusal({ source: `${source.url()}?sslmode=require` })).toMatch(/^the source cannot be /);
  });

  test('for databases that do not fit each other', async () => {
    const { from, to } = await makePair('refused');
    expect(await refusal({ source: from, target: from })).toBe('source and target are the same database');
    expect(await refusal({ source: to, target: from })).toContain(
      `the source is Postgres 18 and the target ${sourceMajor}`,
    );
    await run(from, `SELECT lo_from_bytea(0, 'large')`, 'CREATE TABLE t (id int)');
    expect(await refusal({ source: from, target: to })).toMatch(
      /^the source has 1 large objects, which are not copied/,
    );
    await run(to, 'CREATE TABLE mine (id int)', 'CREATE VIEW also AS SELECT 1');
    await run(from, 'SELECT lo_unlink(oid) FROM pg_largeobject_metadata');
    expect(await refusal({ source: from, target: to })).toMatch(/^the target is not empty, it has mine, also: /);
    expect(await ask(to, `SELECT to_regclass('t') IS NULL AND to_regnamespace('catnap_import') IS NULL`)).toBe('true');
  });
});

test('a schema that cannot be made leaves nothing behind', async () => {
  const { from, to } = await makePair('half');
  await run(from, 'CREATE ROLE halfway', 'CREATE TABLE t (id int)', 'ALTER TABLE t OWNER TO halfway');
  await run(from, `CREATE FUNCTION c() RETURNS int LANGUAGE c AS '$libdir/pg_trgm', 'set_limit'`);
  await expect(copyDatabase({ source: from, target: to })).rejects.toThrow(
    /^function c\(\) cannot be made in the target/,
  );
  expect(await ask(to, `SELECT to_regclass('t') IS NULL AND to_regnamespace('catnap_import') IS NULL`)).toBe('true');
  expect(await ask(to, `SELECT count(*) FROM pg_roles WHERE rolname = 'halfway'`)).toBe('0');
});

test('a copy that was cut off goes on where it was', async () => {
  const { from, to } = await makePair('again');
  const values = `SELECT i, repeat('x', 100) FROM generate_series(1, 2000) i`;
  await run(from, ...['a', 'b', 'c'].map((name) => `CREATE TABLE ${name} (id int PRIMARY KEY, v text)`));
  await run(from, ...['a', 'b', 'c'].map((name) => `INSERT INTO ${name} ${values}`));
  const cut = (at: string) => (progress: CopyProgress) => {
    if (progress.name === at) throw new Error(`cut off at ${at}`);
  };
  await expect(copyDatabase({ source: from, target: to, method: 'copy' }, cut('public.b'))).rejects.toThrow(
    'cut off at public.b',
  );
  expect(await ask(to, 'SELECT count(*) FROM a')).toBe('2000');
  const other = await makePair('another');
  await run(other.from, 'CREATE TABLE t (id int)');
  await expect(copyDatabase({ source: other.from, target: to })).rejects.toThrow(/unfinished copy of another database/);

  const told: string[] = [];
  await expect(
    copyDatabase({ source: from, target: to, method: 'copy' }, (progress) => {
      if (progress.phase === 'rows') told.push(progress.name);
      cut('b b_pkey')(progress);
    }),
  ).rejects.toThrow('cut off at b b_pkey');
  expect(new Set(told)).toEqual(new Set(['public.b', 'public.c']));
  const report = await copyDatabase({ source: from, target: to, method: 'copy' });
  expect(report).toMatchObject({ tables: 3, rows: 6000, isResumed: true });
  for (const name of ['a', 'b', 'c']) expect(await ask(to, `SELECT count(*) FROM ${name}`)).toBe('2000');
  expect(
    await ask(
      to,
      `SELECT count(*) FROM pg_constraint WHERE contype = 'p' AND conrelid IN ('a'::regclass, 'b'::regclass, 'c'::regclass)`,
    ),
  ).toBe('3');
  expect(await ask(to, `SELECT to_regnamespace('catnap_import') IS NULL`)).toBe('true');
});

test('two copies into one database at once are refused', async () => {
  const { from, to } = await makePair('twice');
  await run(from, 'CREATE TABLE t (id int)');
  const held: string[] = [];
  const holder = new pg.Client({ connectionString: to });
  await holder.connect();
  const looking: Promise<unknown>[] = [];
  try {
    await copyDatabase({ source: from, target: to }, ({ phase }) => {
      if (phase === 'check')
        looking.push(holder.query(locks).then(({ rows }) => held.push(...rows.map(({ id }) => id))));
    });
    await Promise.all(looking);
    // The lock that a copy holds is the one that is held now.
    expect(held).toEqual(['7070005']);
    await holder.query('SELECT pg_advisory_lock(7070005)');
    await expect(copyDatabase({ source: from, target: to })).rejects.toThrow(
      'another copy into this database is under way',
    );
  } finally {
    await holder.end();
  }
});

// With one row, everything is sent by the time the target answers.
test.each([1, 100_000])('a row that the target refuses ends the copy of %d, with the reason', async (count) => {
  const { from, to } = await makePair(`strict_${count}`);
  await run(from, `CREATE TABLE t (v int CHECK (current_setting('server_version_num')::int < 180000))`);
  await run(from, `INSERT INTO t SELECT generate_series(1, ${count})`);
  await expect(copyDatabase({ source: from, target: to, method: 'copy' })).rejects.toThrow(
    /^public\.t could not be copied: .*violates check constraint/,
  );
  expect(await ask(to, 'SELECT count(*) FROM t')).toBe('0');
});

describe('where the source permits replication', () => {
  const leftInSource = (from: string) =>
    rowsOf(from, `SELECT slot_name::text FROM pg_replication_slots UNION SELECT pubname FROM pg_publication`);
  const table = 'CREATE TABLE t (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, v text, at timestamptz, data jsonb)';
  const sum = `SELECT count(*), md5(string_agg(t::text, chr(10) ORDER BY id)) FROM t`;

  test('what is written during the copy and until its end comes along, each change once', async () => {
    const { from, to } = await makePair('live');
    await run(
      from,
      table,
      `CREATE TABLE "Odd ""one" (a text, b int, v text, PRIMARY KEY (b, a))`,
      'CREATE TABLE emptied (id int PRIMARY KEY)',
      'CREATE TABLE child (id int PRIMARY KEY REFERENCES t)',
      'CREATE MATERIALIZED VIEW many AS SELECT count(*) FROM t',
      `CREATE FUNCTION stamp() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.v := NEW.v || '!'; RETURN NEW; END $$`,
      'CREATE TRIGGER stamped BEFORE INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION stamp()',
      `INSERT INTO t (v, at, data) SELECT 'v' || i, now(), '{"a": [1, "x"]}' FROM generate_series(1, 2000) i`,
      `INSERT INTO "Odd ""one" VALUES ('k', 1, 'old'), ('k', 2, 'gone')`,
      'INSERT INTO emptied VALUES (1)',
    );
    const during = [
      `INSERT INTO t (v, at, data) VALUES (E'tab\\t\\nnew', '2026-01-31 12:00:00.123456+00', 'null'), (NULL, NULL, NULL)`,
      `UPDATE t SET v = 'changed', data = '{"b": "é"}' WHERE id <= 10`,
      'DELETE FROM t WHERE id BETWEEN 11 AND 20',
      `UPDATE "Odd ""one" SET a = 'moved', v = repeat('long ', 5000) WHERE b = 1`,
      `DELETE FROM "Odd ""one" WHERE b = 2`,
      'TRUNCATE emptied',
      'INSERT INTO child VALUES (1)',
    ];
    let written: Promise<void> | undefined;
    let isAsked = false;
    const report = await copyDatabase(
      {
        source: from,
        target: to,
        whenCaughtUp: async () => {
          await written;
          isAsked = true;
          await run(from, `UPDATE "Odd ""one" SET b = 7`, `INSERT INTO t (v) VALUES ('last')`);
        },
      },
      ({ phase }) => {
        if (phase === 'rows') written ??= run(from, ...during);
      },
    );
    expect(isAsked).toBe(true);
    expect(report).toMatchObject({ method: 'replication', isResumed: false, notes: [] });
    for (const text of [sum, 'SELECT * FROM "Odd ""one"', 'SELECT * FROM emptied', 'SELECT * FROM child']) {
      expect([text, await rowsOf(to, text)]).toEqual([text, await rowsOf(from, text)]);
    }
    expect(await ask(to, 'SELECT count FROM many')).toBe(await ask(from, 'SELECT count(*) FROM t'));
    expect(await leftInSource(from)).toEqual([]);
    // Identity and triggers go on as they did in the source.
    await run(to, `INSERT INTO t (v) VALUES ('behind')`);
    expect(await ask(to, 'SELECT v FROM t ORDER BY id DESC LIMIT 1')).toBe('behind!');
  });

  test('a copy that is cut off goes on, and makes no change twice', async () => {
    const { from, to } = await makePair('livecut');
    await run(from, table, 'CREATE TABLE u (id int PRIMARY KEY, n int)');
    await run(from, `INSERT INTO t (v) SELECT 'v' || i FROM generate_series(1, 1000) i`, 'INSERT INTO u VALUES (1, 0)');
    const cut = (at: string) => (progress: CopyProgress) => {
      if (progress.name === at || progress.phase === at) throw new Error(`cut off at ${at}`);
    };
    const attempt = (at: string) => copyDatabase({ source: from, target: to }, cut(at)).catch(({ message }) => message);
    const write = () =>
      run(from, 'UPDATE u SET n = n + 1', `INSERT INTO t (v) VALUES ('more')`, 'DELETE FROM t WHERE id % 7 = 0');
    expect(await attempt('public.u')).toContain('cut off at public.u');
    expect(await leftInSource(from)).toHaveLength(1);
    await write();
    expect(await attempt('u u_pkey')).toContain('cut off at u u_pkey');
    await write();
    // Behind the commit of the first portion, and before the source hears of it or after.
    expect(await attempt('changes')).toContain('cut off at changes');
    await write();
    expect(await attempt('finish')).toContain('cut off at finish');
    const report = await copyDatabase({ source: from, target: to });
    expect(report).toMatchObject({ method: 'replication', isResumed: true });
    expect(await rowsOf(to, sum)).toEqual(await rowsOf(from, sum));
    expect(await ask(to, 'SELECT n FROM u')).toBe('3');
    expect(await leftInSource(from)).toEqual([]);
  });

  test('a table that is made meanwhile ends the copy: nobody would follow it', async () => {
    const { from, to } = await makePair('madelater');
    await run(from, 'CREATE TABLE t (id int PRIMARY KEY)');
    const whenCaughtUp = () => run(from, 'CREATE TABLE later (id int PRIMARY KEY)', 'INSERT INTO later VALUES (1)');
    const copying = copyDatabase({ source: from, target: to, whenCaughtUp });
    await expect(copying).rejects.toThrow('is not followed: public.later (id)');
    await run(from, 'DROP TABLE later');
    expect(await copyDatabase({ source: from, target: to })).toMatchObject({ method: 'replication', isResumed: true });
  });

  test('a record that is kept answers for the copy until it is forgotten', async () => {
    const { from, to } = await makePair('kept');
    await run(from, 'CREATE TABLE t (id int PRIMARY KEY)', 'INSERT INTO t VALUES (1)');
    const request = { source: from, target: to, keepsRecord: true };
    const first = await copyDatabase(request);
    await run(to, 'INSERT INTO t VALUES (2)');
    expect(await copyDatabase(request)).toEqual({ ...first, isResumed: true });
    expect(await ask(to, 'SELECT count(*) FROM t')).toBe('2');
    await forgetCopy(to);
    await expect(copyDatabase(request)).rejects.toThrow('the target is not empty');
  });

  test('a table without a key is copied all the same, and is a reason not to follow', async () => {
    const { from, to } = await makePair('keyless');
    await run(from, 'CREATE TABLE t (v text)', `INSERT INTO t VALUES ('a'), ('a'), (NULL)`);
    await expect(copyDatabase({ source: from, target: to, method: 'replication' })).rejects.toThrow(
      'the source does not permit to follow its changes: table t has no primary key',
    );
    expect(await copyDatabase({ source: from, target: to })).toMatchObject({ method: 'copy', rows: 3 });
    expect(await leftInSource(from)).toEqual([]);
  });
});

test('settings that the target does not take are left out, with a note', async () => {
  const { to } = await makePair('settings');
  const texts = ['no_such_setting=1', 'work_mem=7MB', 'default_toast_compression=none', 'log_statement=all'];
  const all = texts.map((text) => ({ database: 'settings', role: null, text }));
  expect(await makeServerSettings(to, all)).toEqual([
    expect.stringMatching(/^the setting no_such_setting of settings was left out: unrecognized/),
    expect.stringMatching(/^the setting default_toast_compression of settings was left out: invalid value/),
    expect.stringMatching(/^the setting log_statement of settings was left out: permission denied/),
  ]);
  expect(await ask(to, 'SHOW work_mem')).toBe('7MB');
});
