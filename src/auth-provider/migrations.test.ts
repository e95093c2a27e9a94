import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { eventually } from '../../test/helpers/eventually.ts';
import { connect } from '../db/client.ts';
import { migrate } from '../db/migrate.ts';
import { loadAuthProviderMigrations } from './migrations.ts';

const database = `m_${randomUUID().replaceAll('-', '')}`;
const options = { ...inject('systemDatabase'), database };

async function asAdmin(statement: string): Promise<void> {
  const sql = connect(inject('systemDatabase'), 1, 'test');
  await sql.unsafe(statement);
  await sql.end();
}
beforeAll(() => asAdmin(`create database ${database}`));
afterAll(() => eventually(() => asAdmin(`drop database ${database}`)));

test('OAuth providers with credentials of their own outlive the shared ones', async () => {
  const set = await loadAuthProviderMigrations();
  await migrate(options, [{ ...set, migrations: set.migrations.slice(0, 1) }]);
  const sql = connect(options, 1, 'test');
  const [project] = await sql`insert into stack_projects (id, display_name) values (${randomUUID()}, 'p') returning id`;
  await sql`
    insert into stack_oauth_providers (project_id, id, type, client_id, client_secret)
    values (${project?.id}, 'google', 'shared', null, null), (${project?.id}, 'github', 'standard', 'c', '\\x01')`;
  await migrate(options, [set]);
  expect(await sql`select id, client_id from stack_oauth_providers`).toEqual([{ id: 'github', clientId: 'c' }]);
  await sql.end();
});
