/** A migrated system database of its own for each test file, cloned from one template. */
import { randomUUID } from 'node:crypto';
import { inject } from 'vitest';
import { connect, type Database, type DatabaseOptions, openDatabase } from '../../src/db/client.ts';
import { migrate } from '../../src/db/migrate.ts';
import { loadAllMigrations } from '../../src/processes/migrations.ts';
import { eventually } from './eventually.ts';

const template = 'catnap_template';
/** Names the lock that test files queue on while one of them makes the template. */
const lockKey = 7_070_002;

export interface TestDatabase {
  readonly database: Database;
  readonly options: DatabaseOptions;
  drop(): Promise<void>;
}

export async function makeDatabase(poolSize = 10): Promise<TestDatabase> {
  const name = `t_${randomUUID().replaceAll('-', '')}`;
  const admin = inject('systemDatabase');
  const sql = connect(admin, 1, 'test-databases');
  try {
    await sql`select pg_advisory_lock(${lockKey})`;
    const [made] = await sql`select 1 from pg_database where datname = ${template}`;
    if (made === undefined) {
      await sql.unsafe(`create database ${template}`);
      await migrate({ ...admin, database: template }, await loadAllMigrations());
    }
    // As files: page by page through the log, as is usual, takes more than twice as long.
    await sql.unsafe(`create database ${name} template ${template} strategy file_copy`);
    // Nobody pulls the plug on a test: commits need not wait for the disk.
    await sql.unsafe(`alter database ${name} set synchronous_commit = off`);
  } finally {
    await sql.end();
  }
  const options = { ...admin, database: name };
  const database = openDatabase(options, { poolSize, name: 'test' });
  return {
    database,
    options,
    drop: async () => {
      await database.close();
      const dropper = connect(admin, 1, 'test-databases');
      // Not by force, which an autovacuum worker of the superuser would refuse: the last session is about to end.
      await eventually(() => dropper.unsafe(`drop database if exists ${name}`));
      await dropper.end();
    },
  };
}
