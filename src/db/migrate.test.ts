import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { eventually } from '../../test/helpers/eventually.ts';
import { connect, type DatabaseOptions } from './client.ts';
import { loadMigrations, migrate } from './migrate.ts';

const name = `m_${randomUUID().replaceAll('-', '')}`;
const options: DatabaseOptions = { ...inject('systemDatabase'), database: name };

async function asAdmin(statement: string): Promise<void> {
  const sql = connect(inject('systemDatabase'), 1, 'test');
  await sql.unsafe(statement);
  await sql.end();
}

beforeAll(() => asAdmin(`create database ${name}`));
afterAll(() => eventually(() => asAdmin(`drop database ${name}`)));

describe('migrate', () => {
  it('is applied once when several start at the same moment', async () => {
    const applied = await Promise.all([migrate(options), migrate(options), migrate(options)]);
    const all = (await loadMigrations()).length;
    expect(applied.sort()).toEqual([0, 0, all]);
  });

  it('does nothing to a schema that is up to date', async () => {
    expect(await migrate(options)).toBe(0);
  });

  it('refuses a schema that a newer program made', async () => {
    const known = await loadMigrations();
    const newer = { version: 9999, name: '9999-later.sql', sql: 'create table later (id int)', checksum: 'x' };
    expect(await migrate(options, [...known, newer])).toBe(1);
    await expect(migrate(options, known)).rejects.toThrow(/schema version 9999.*start the newer Catnap/s);
  });

  it('refuses a migration that was changed after it was applied', async () => {
    const [first, ...others] = await loadMigrations();
    if (first === undefined) throw new Error('there is no migration');
    await expect(migrate(options, [{ ...first, checksum: 'other' }, ...others])).rejects.toThrow(/differs/);
  });

  it('leaves nothing of a migration that fails', async () => {
    const known = await loadMigrations();
    const kept = { version: 9999, name: '9999-later.sql', sql: '', checksum: 'x' };
    const broken = {
      version: 10000,
      name: '10000-broken.sql',
      sql: 'create table half (id int); select nonsense',
      checksum: 'y',
    };
    await expect(migrate(options, [...known, kept, broken])).rejects.toThrow(/nonsense/);
    const sql = connect(options, 1, 'test');
    const [half] = await sql`select to_regclass('half') as half`;
    await sql.end();
    expect(half?.half).toBeNull();
  });
});
