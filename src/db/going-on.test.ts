import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeProject } from '../../test/helpers/commands.ts';
import { makeCore, type TestCore } from '../../test/helpers/core.ts';
import { selectRestlessEndpoints } from './going-on.ts';
import { insertRows, selectRows } from './rows.ts';

let made: TestCore;
beforeAll(async () => {
  made = await makeCore();
});
afterAll(() => made.close());

test('what must stop before Catnap does is found among many that sleep without reading them', async () => {
  const { endpoint } = await makeProject(made);
  const { database } = made.core;
  const [row] = await selectRows(database.sql, 'endpoints', database.sql`t.id = ${endpoint.id}`);
  const copy = (i: number) => ({ ...row, id: `ep-many-${i}`, type: 'read_only', current_state: 'idle' });
  const many = Array.from({ length: 3_000 }, (_, i) => copy(i));
  await database.transaction((tx) => insertRows(tx, 'endpoints', many));
  await database.sql`analyze endpoints, operations`;
  await database.transaction(async (tx) => {
    expect(await selectRestlessEndpoints(tx)).toEqual([{ id: endpoint.id, projectId: endpoint.projectId }]);
    const [scans] = await tx`select seq_scan from pg_stat_xact_user_tables where relname = 'endpoints'`;
    expect(scans).toEqual({ seqScan: 0 });
  });
});
