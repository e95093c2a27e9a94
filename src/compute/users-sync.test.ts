/** The copying of users against a tenant whose triggers work against it. */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type LocalSubject, makeLocalSubject } from '../../test/helpers/local-subject.ts';
import { Bench, ownerAndDatabase } from './contract/bench.ts';

let subject: LocalSubject;
let b: Bench;
beforeAll(async () => {
  subject = await makeLocalSubject(17);
  b = new Bench(subject);
});
afterAll(async () => {
  await b.driver.removeProject(b.ref);
  await subject.close();
});

test('a position that the tenant puts back again and again ends the copying', async () => {
  const running = await b.started();
  await b.driver.configure(b.ref, ownerAndDatabase);
  const table = { database: 'app', readerName: 'owner', providerProjectId: randomUUID() };
  const user = { id: randomUUID(), display_name: 'Ann', signed_up_at_millis: 1 };
  const change = { seq: 1, userId: user.id, kind: 'created' as const, user, occurredAt: new Date() };
  await b.driver.syncUsers(b.ref, table, async () => []);
  await b.query(
    running,
    `CREATE FUNCTION stay() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.position := 0; RETURN NEW; END';
     CREATE TRIGGER stay BEFORE UPDATE ON neon_auth.users_sync_position FOR EACH ROW EXECUTE FUNCTION stay()`,
  );
  const copying = b.driver.syncUsers(b.ref, table, async (position) => (position < 1 ? [change] : []));
  await expect(copying).rejects.toThrow(/does not stay/);
});
