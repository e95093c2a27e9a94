import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type LocalSubject, makeLocalSubject } from '../../../../../test/helpers/local-subject.ts';
import { Bench } from '../../../contract/bench.ts';
import { adminLogin, type Session, withSession } from '../../../server/admin-session.ts';

let subject: LocalSubject;
let bench: Bench;
beforeAll(async () => {
  subject = await makeLocalSubject(17);
  bench = new Bench(subject);
});
afterAll(async () => {
  await bench.driver.removeProject(bench.ref);
  await subject.close();
});

const mapsIn = async (data: string) =>
  (await readdir(data, { recursive: true })).filter((path) => /\/\d+_(fsm|vm)$/.test(path));

test('a new project has no maps of its tables, and its server makes those that it needs', async () => {
  const { address } = await bench.started();
  if (address === null) throw new Error('it does not run');
  const data = join(subject.layout.branch(bench.ref.projectId, bench.ref.branchId), 'pgdata');
  expect(await mapsIn(data)).toEqual([]);
  const size = await withSession(address, adminLogin(bench.adminSecret), async (sql: Session) => {
    await sql`VACUUM pg_class`;
    const [found] = await sql<{ bytes: number }[]>`SELECT pg_relation_size('pg_class', 'vm')::int AS bytes`;
    return found?.bytes;
  });
  expect(size).toBeGreaterThan(0);
  expect((await mapsIn(data)).length).toBeGreaterThan(0);
});
