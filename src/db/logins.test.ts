import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeProject } from '../../test/helpers/commands.ts';
import { makeCore, type TestCore } from '../../test/helpers/core.ts';
import { selectPendingCatalog } from '../core/catalog.ts';
import { selectLogin } from './logins.ts';
import { insertRows, selectRows } from './rows.ts';

let made: TestCore;
beforeAll(async () => {
  made = await makeCore();
});
afterAll(() => made.close());

test('a login and a start read the roles and databases of their branch alone, however many there are', async () => {
  const { branch, endpoint, role } = await makeProject(made);
  const { database } = made.core;
  const [row] = await selectRows(database.sql, 'branches', database.sql`t.id = ${branch.id}`);
  const copy = (i: number) => ({ ...row, id: `br-many-${i}`, name: `many ${i}`, is_default: false });
  const many = Array.from({ length: 3_000 }, (_, i) => copy(i));
  await database.transaction((tx) => insertRows(tx, 'branches', many));
  await database.sql`insert into roles (branch_id, name) select id, 'many' from branches where id like 'br-many-%'`;
  await database.sql`
    insert into databases (branch_id, name, owner_name) select id, 'many', 'many' from branches where id like 'br-many-%'`;
  await database.sql`analyze branches, roles, databases`;
  await database.transaction(async (tx) => {
    expect(await selectLogin(tx, endpoint.id, role.name)).toMatchObject({ branchId: branch.id, pending: true });
    expect(await selectPendingCatalog(tx, branch.id)).toMatchObject({ roles: [{ name: role.name }] });
    const scans = await tx`
      select relname, seq_scan from pg_stat_xact_user_tables where relname in ('roles', 'databases') order by relname`;
    expect(scans).toEqual([
      { relname: 'databases', seqScan: 0 },
      { relname: 'roles', seqScan: 0 },
    ]);
  });
});
