import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { dumpSchema, tablesOfRooms } from '../../scripts/dump-schema.mjs';
import { eventually } from '../../test/helpers/eventually.ts';
import { loadAllMigrations } from '../processes/migrations.ts';
import { lastVersionsAdopted } from './before-release.ts';
import { connect, type DatabaseOptions } from './client.ts';
import {
  knownVersions,
  loadMigrations,
  type Migration,
  type MigrationSet,
  migrate,
  readVersions,
  type SchemaVersions,
  undoMigrations,
} from './migrate.ts';

async function asAdmin(statement: string): Promise<void> {
  const sql = connect(inject('systemDatabase'), 1, 'test');
  await sql.unsafe(statement);
  await sql.end();
}

/** An empty database for the tests of one block. */
function useDatabase(): DatabaseOptions {
  const database = `m_${randomUUID().replaceAll('-', '')}`;
  beforeAll(() => asAdmin(`create database ${database}`));
  afterAll(() => eventually(() => asAdmin(`drop database ${database}`)));
  return { ...inject('systemDatabase'), database };
}

async function withLater(...later: readonly Migration[]): Promise<MigrationSet[]> {
  const sets = await loadAllMigrations();
  return sets.map((set) => (set.name === 'platform' ? { ...set, migrations: [...set.migrations, ...later] } : set));
}

describe('migrate', () => {
  const options = useDatabase();

  it('is applied once when several start at the same moment', async () => {
    const sets = await loadAllMigrations();
    const applied = await Promise.all([migrate(options, sets), migrate(options, sets), migrate(options, sets)]);
    const all = sets.flatMap((set) => set.migrations).length;
    expect(applied.map(({ count }) => count).sort()).toEqual([0, 0, all]);
    expect(applied.find(({ count }) => count > 0)?.before).toBeNull();
  });

  it('does nothing to a schema that is up to date', async () => {
    const sets = await loadAllMigrations();
    expect(await migrate(options, sets)).toEqual({ count: 0, before: knownVersions(sets) });
  });

  it('refuses a schema that a newer program made', async () => {
    const newer = {
      version: 9999,
      name: '9999-later.sql',
      sql: 'create table later (id int)',
      checksum: 'x',
      undo: null,
    };
    expect((await migrate(options, await withLater(newer))).count).toBe(1);
    const refused = migrate(options, await loadAllMigrations());
    await expect(refused).rejects.toThrow(/platform schema version 9999.*start the newer Catnap/s);
  });

  it('refuses a migration that was changed after it was applied', async () => {
    const [set, ...others] = await loadAllMigrations();
    const [first, ...later] = set?.migrations ?? [];
    if (set === undefined || first === undefined) throw new Error('there is no migration');
    const changed = { ...set, migrations: [{ ...first, checksum: 'other' }, ...later] };
    await expect(migrate(options, [changed, ...others])).rejects.toThrow(/differs/);
  });

  it('leaves nothing of a migration that fails', async () => {
    const kept = { version: 9999, name: '9999-later.sql', sql: '', checksum: 'x', undo: null };
    const broken = {
      version: 10000,
      name: '10000-broken.sql',
      sql: 'create table half (id int); select nonsense',
      checksum: 'y',
      undo: null,
    };
    await expect(migrate(options, await withLater(kept, broken))).rejects.toThrow(/nonsense/);
    const sql = connect(options, 1, 'test');
    const [half] = await sql`select to_regclass('half') as half`;
    await sql.end();
    expect(half?.half).toBeNull();
  });
});

describe('a migration beside sessions that use the database', () => {
  const options = useDatabase();

  it('lets them go on while it waits for a table, and comes through when it is free', async () => {
    await migrate(options, await loadAllMigrations());
    const [holder, other] = [connect(options, 1, 'test'), connect(options, 1, 'test')];
    const held = await holder.reserve();
    await held`begin`;
    await held`select count(*) from projects`;
    const sql = 'alter table projects add column later int';
    const migrating = migrate(
      options,
      await withLater({ version: 9999, name: '9999-later.sql', sql, checksum: 'x', undo: null }),
      100,
    );
    const waiting = () => other<{ count: number }[]>`
      select count(*)::int as count from pg_stat_activity
      where application_name = 'catnap-migrate' and wait_event_type = 'Lock' and datname = current_database()`;
    await eventually(async () => expect((await waiting())[0]?.count).toBe(1));
    // Behind the waiting statement this one would wait until the first transaction has ended.
    await other`select count(*) from projects`;
    await held`commit`;
    held.release();
    expect((await migrating).count).toBe(1);
    await Promise.all([holder.end(), other.end()]);
  });
});

describe('an undo', () => {
  const options = useDatabase();
  /** Those up to here are from before there were any. */
  const lastWithout: SchemaVersions = { platform: 19, 'auth-provider': 2 };
  const upTo = (sets: readonly MigrationSet[], versions: SchemaVersions) =>
    sets.map((set) => ({
      ...set,
      migrations: set.migrations.filter(({ version }) => version <= (versions[set.name] ?? 0)),
    }));

  it('is there for every migration, and leaves the schema as it was', async () => {
    const sets = await loadAllMigrations();
    const sql = connect(options, 1, 'test');
    const dump = async () => Promise.all(Object.keys(tablesOfRooms).map((room) => dumpSchema(sql, room)));
    const steps = sets.flatMap(({ name, migrations }) =>
      migrations.filter(({ version }) => version > (lastWithout[name] ?? 0)).map((migration) => ({ name, migration })),
    );
    expect(steps.length).toBeGreaterThan(5);
    const without = steps.filter(({ migration }) => migration.undo === null).map(({ migration }) => migration.name);
    expect(without, 'write the statements that take it back into a file <name>.undo.sql beside it').toEqual([]);
    let versions = lastWithout;
    await migrate(options, upTo(sets, versions));
    const seen: { versions: SchemaVersions; dump: string[] }[] = [];
    for (const { name, migration } of steps) {
      seen.push({ versions, dump: await dump() });
      versions = { ...versions, [name]: migration.version };
      expect(await migrate(options, upTo(sets, versions))).toEqual({ count: 1, before: seen.at(-1)?.versions });
    }
    for (const before of seen.reverse()) {
      expect(await undoMigrations(options, sets, before.versions)).toHaveLength(1);
      expect(await readVersions(sql)).toEqual(before.versions);
      expect(await dump()).toEqual(before.dump);
    }
    expect((await migrate(options, sets)).count).toBe(steps.length);
    await sql.end();
  });

  it('of several takes back all of them, or none', async () => {
    const sets = await loadAllMigrations();
    const sql = connect(options, 1, 'test');
    await expect(undoMigrations(options, sets, { ...lastWithout, platform: 18 })).rejects.toThrow(
      'platform migration 0019-roles-of-a-branch.sql cannot be undone: restore a backup',
    );
    expect(await readVersions(sql)).toEqual(knownVersions(sets));
    const undone = await undoMigrations(options, sets, { ...lastWithout, platform: 23 });
    expect(undone.slice(-2)).toEqual(['0025-webhooks.sql', '0024-key-scopes.sql']);
    await sql.end();
  });

  it('revokes keys that the program before would let do more', async () => {
    const sets = await loadAllMigrations();
    await migrate(options, sets);
    const sql = connect(options, 1, 'test');
    await sql`alter table api_keys drop constraint api_keys_user_id_fkey, drop constraint api_keys_created_by_fkey`;
    for (const [name, scope, expiresAt] of [
      ['whole', 'full', null],
      ['less', 'sql', null],
      ['short', 'full', new Date(Date.now() + 1e9)],
    ] as const) {
      await sql`
        insert into api_keys (token_hash, kind, user_id, name, created_by, scope, expires_at)
        values (${Buffer.from(name)}, 'personal', gen_random_uuid(), ${name}, gen_random_uuid(), ${scope}, ${expiresAt})`;
    }
    await undoMigrations(options, sets, { ...knownVersions(sets), platform: 23 });
    const left = await sql<{ name: string }[]>`select name from api_keys`;
    await sql.end();
    expect(left.map(({ name }) => name)).toEqual(['whole']);
  });
});

describe('a schema from before the first release', () => {
  const options = useDatabase();

  /** As the program of that time left it after these migrations. */
  async function makeOld(migrations: readonly Migration[]): Promise<void> {
    const sql = connect(options, 1, 'test');
    await sql.unsafe('drop schema if exists catnap cascade; create schema catnap');
    await sql`create table schema_migrations (version integer primary key, name text not null, checksum text not null,
      applied_at timestamptz not null default now())`;
    for (const { version, name, checksum, sql: text } of migrations) {
      await sql.unsafe(text);
      await sql`insert into schema_migrations ${sql({ version, name, checksum })}`;
    }
    await sql.end();
  }

  /** Those that came after the release. */
  const countLater = (sets: readonly MigrationSet[]) =>
    sets.flatMap(({ name, migrations }) =>
      migrations.filter(({ version }) => version > (lastVersionsAdopted[name] ?? 0)),
    ).length;

  const loadOld = () => loadMigrations(new URL('../../test/fixtures/migrations-before-release/', import.meta.url));

  it('is adopted as it is, and equals one that was made anew', async () => {
    await makeOld(await loadOld());
    const sets = await loadAllMigrations();
    const applied = await Promise.all([migrate(options, sets), migrate(options, sets)]);
    expect(applied.map(({ count }) => count).sort()).toEqual([0, countLater(sets)]);
    expect((await migrate(options, sets)).count).toBe(0);
    const sql = connect(options, 1, 'test');
    for (const room of Object.keys(tablesOfRooms)) {
      const ofNew = readFileSync(new URL(`../${room}/schema.sql`, import.meta.url), 'utf8');
      expect(await dumpSchema(sql, room)).toBe(ofNew);
    }
    const rows = await sql`select count(*)::int as count from stack_projects`;
    await sql.end();
    expect(rows[0]?.count).toBe(1);
  });

  it('keeps queued work, under the names that steps have now', async () => {
    await makeOld(await loadOld());
    const sql = connect(options, 1, 'test');
    await sql`alter table operations drop constraint operations_project_id_fkey`;
    for (const [job, step] of [
      ['create_branch', 'read_parent'],
      ['apply_config', 'look'],
      ['start_compute', 'fence'],
    ] as const) {
      await sql`
        insert into operations (id, project_id, status, job, step, exclusive_keys, shared_keys, deadline_at)
        values (gen_random_uuid(), 'p', 'running', ${job}, ${step}, '{}', '{}', now())`;
    }
    await migrate(options, await loadAllMigrations());
    const rows = await sql<{ step: string }[]>`select step from operations order by sequence`;
    await sql.end();
    expect(rows.map(({ step }) => step)).toEqual(['copy', 'observe', 'fence']);
  });

  it('gets the migrations that came later', async () => {
    await makeOld(await loadOld());
    const later = {
      version: 9999,
      name: '9999-later.sql',
      sql: 'create table later (id int)',
      checksum: 'x',
      undo: null,
    };
    const sets = await withLater(later);
    expect(countLater(sets)).toBeGreaterThan(0);
    expect((await migrate(options, sets)).count).toBe(countLater(sets));
  });

  it('is refused, and left alone, when it is not the last one', async () => {
    const older = (await loadOld()).slice(0, -1);
    await makeOld(older);
    const refused = migrate(options, await loadAllMigrations());
    await expect(refused).rejects.toThrow(/schema version 12 from before the first release/);
    const sql = connect(options, 1, 'test');
    const rows = await sql`select version from schema_migrations order by version`;
    await sql.end();
    expect(rows.map(({ version }) => version)).toEqual(older.map(({ version }) => version));
  });
});

describe('0007, which drops what had no effect', () => {
  const options = useDatabase();

  it('leaves what is true, and the pooled hosts open', async () => {
    const sets = await loadAllMigrations();
    const before = sets.map((set) =>
      set.name === 'platform' ? { ...set, migrations: set.migrations.filter(({ version }) => version < 7) } : set,
    );
    await migrate(options, before);
    const sql = connect(options, 1, 'test');
    // Without the rows that these refer to.
    await sql`
      alter table projects drop constraint projects_organization_id_fkey, drop constraint projects_owner_id_fkey`;
    await sql`alter table endpoints drop constraint endpoints_branch_id_fkey`;
    const settings = { block_public_connections: true, block_vpc_connections: true, hipaa: true };
    await sql`
      insert into projects (id, organization_id, owner_id, name, region_id, pg_version, store_passwords,
        history_retention_seconds, provisioner, settings, default_endpoint_settings, admin_secret)
      values ('p', 'o', gen_random_uuid(), 'p', 'local', 17, true, 0, 'k8s-pod',
        ${sql.json({ ...settings, audit_log_level: 'full' })}, '{}', '')`;
    await sql`
      insert into endpoints (id, project_id, branch_id, type, min_cu, max_cu, suspend_timeout_seconds, settings,
        pooler_enabled, pooler_mode, disabled, passwordless_access, provisioner, current_state)
      values ('ep-a', 'p', 'br-a', 'read_write', 1, 1, 0, '{}', false, 'transaction', false, true, 'k8s-pod', 'idle')`;
    await migrate(options, sets);
    const [project] = await sql`select settings from projects`;
    expect(project?.settings).toEqual({ ...settings, block_vpc_connections: false, hipaa: false });
    const [endpoint] = await sql`select pooler_enabled from endpoints`;
    expect(endpoint).toEqual({ poolerEnabled: true });
    await sql.end();
  });
});

describe('a migration that was released', () => {
  it.each(['db', 'auth-provider'])('of src/%s never changes', async (room) => {
    const directory = new URL(`../${room}/migrations/`, import.meta.url);
    const frozen: Readonly<Record<string, string>> = JSON.parse(
      readFileSync(new URL('frozen.json', directory), 'utf8'),
    );
    const migrations = await loadMigrations(directory);
    const there = new Map(migrations.map(({ name, checksum }) => [name, checksum]));
    for (const [name, checksum] of Object.entries(frozen)) {
      expect(there.get(name), `${name} was released: write a new migration instead of changing it`).toBe(checksum);
    }
    const loose = migrations.filter(({ name }) => frozen[name] === undefined);
    const lines = loose.map(({ name, checksum }) => `"${name}": "${checksum}"`).join(', ');
    expect(lines, `when the text is final, add this to src/${room}/migrations/frozen.json`).toBe('');
    expect(migrations.map(({ version }) => version)).toEqual(migrations.map((_, index) => index + 1));
  });
});
