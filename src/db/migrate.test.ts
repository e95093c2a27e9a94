import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { dumpSchema, tablesOfRooms } from '../../scripts/dump-schema.mjs';
import { eventually } from '../../test/helpers/eventually.ts';
import { loadAllMigrations } from '../processes/migrations.ts';
import { lastVersionsAdopted } from './before-release.ts';
import { connect, type DatabaseOptions } from './client.ts';
import { loadMigrations, type Migration, type MigrationSet, migrate } from './migrate.ts';

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
    expect(applied.sort()).toEqual([0, 0, all]);
  });

  it('does nothing to a schema that is up to date', async () => {
    expect(await migrate(options, await loadAllMigrations())).toBe(0);
  });

  it('refuses a schema that a newer program made', async () => {
    const newer = { version: 9999, name: '9999-later.sql', sql: 'create table later (id int)', checksum: 'x' };
    expect(await migrate(options, await withLater(newer))).toBe(1);
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
    const kept = { version: 9999, name: '9999-later.sql', sql: '', checksum: 'x' };
    const broken = {
      version: 10000,
      name: '10000-broken.sql',
      sql: 'create table half (id int); select nonsense',
      checksum: 'y',
    };
    await expect(migrate(options, await withLater(kept, broken))).rejects.toThrow(/nonsense/);
    const sql = connect(options, 1, 'test');
    const [half] = await sql`select to_regclass('half') as half`;
    await sql.end();
    expect(half?.half).toBeNull();
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
    expect(applied.sort()).toEqual([0, countLater(sets)]);
    expect(await migrate(options, sets)).toBe(0);
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
    const later = { version: 9999, name: '9999-later.sql', sql: 'create table later (id int)', checksum: 'x' };
    const sets = await withLater(later);
    expect(countLater(sets)).toBeGreaterThan(0);
    expect(await migrate(options, sets)).toBe(countLater(sets));
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
