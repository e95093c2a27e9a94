import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeCore, type TestCore } from '../../test/helpers/core.ts';
import { updateApiKeyUses } from './api-keys.ts';

let made: TestCore;
beforeAll(async () => {
  made = await makeCore();
});
afterAll(() => made.close());

test('the last use of a key is the latest one, in whatever order processes write down what they have seen', async () => {
  const { sql } = made.core.database;
  const id = made.caller.keyId;
  const [early, late] = [new Date('2026-01-01T00:00:00Z'), new Date('2026-01-01T00:00:05Z')];
  await updateApiKeyUses(sql, [{ id, at: late, from: '192.0.2.2' }]);
  await updateApiKeyUses(sql, [{ id, at: early, from: '192.0.2.1' }]);
  const rows = await sql`select last_used_at, last_used_from_addr from api_keys where id = ${id}`;
  expect([...rows]).toEqual([{ lastUsedAt: late, lastUsedFromAddr: '192.0.2.2' }]);
});
