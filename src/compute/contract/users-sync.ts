/** The part of the contract about the table of users: what gets into it, in which order, and with whose rights. */

import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { newBranchId, newEndpointId } from '../../lib/ids.ts';
import { buildVerifier } from '../../lib/scram-verifier.ts';
import type { ChangesAfter, UserChange } from '../../lib/users-sync.ts';
import type { ComputeObservation } from '../interface/driver.ts';
import { type Bench, ownerAndDatabase, password } from './bench.ts';

const table = { database: 'app', readerName: 'reader', providerProjectId: randomUUID() };
const signedUp = Date.UTC(2026, 0, 2, 3, 4, 5, 678);

function change(seq: number, userId: string, kind: UserChange['kind'], name = 'Ann'): UserChange {
  const user = { id: userId, display_name: name, primary_email: `${name}@x.test`, signed_up_at_millis: signedUp };
  return { seq, userId, kind, user, occurredAt: new Date(signedUp + seq * 1000) };
}

/** Two at a time, so that there are several batches. */
const inBatches =
  (changes: readonly UserChange[]): ChangesAfter =>
  async (position) =>
    changes.filter(({ seq }) => seq > position).slice(0, 2);

const rows = (b: Bench, on: ComputeObservation, login = {}) =>
  b.query(
    on,
    `select id, name, email, to_char(created_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS.MS') as created_at,
       deleted_at is not null as gone from neon_auth.users_sync order by id`,
    login,
  );

async function ready(b: Bench): Promise<ComputeObservation> {
  const running = await b.started();
  const reader = { name: 'reader', verifier: buildVerifier(password) };
  await b.driver.configure(b.ref, { ...ownerAndDatabase, roles: [...ownerAndDatabase.roles, reader] });
  return running;
}

export function describeUsersSync(bench: () => Bench): void {
  test('a server that does not run takes none, and none is started', async () => {
    const b = bench();
    await b.createBranch();
    expect(await b.driver.syncUsers(b.ref, table, inBatches([]))).toBeNull();
    expect(await b.driver.dropUsers(b.ref, 'app')).toBe(false);
    expect(await b.driver.observe(b.ref)).toMatchObject({ state: 'absent' });
  });

  test('are copied in order, from where the copying was, and can be dropped', async () => {
    const b = bench();
    const running = await ready(b);
    const [ann, bob] = ['00000000-0000-4000-8000-00000000000a', '00000000-0000-4000-8000-00000000000b'];
    const changes = [
      change(1, ann, 'created'),
      change(2, bob, 'created', 'Bob'),
      change(3, ann, 'updated', 'Anna'),
      change(4, bob, 'deleted', 'Bob'),
    ];
    expect(await b.driver.syncUsers(b.ref, table, inBatches([]))).toBe(0);
    expect(await b.driver.syncUsers(b.ref, table, inBatches(changes))).toBe(4);
    expect(await b.driver.syncUsers(b.ref, table, inBatches(changes))).toBe(4);
    // A late change does not bring a deleted user back.
    expect(await b.driver.syncUsers(b.ref, table, inBatches([...changes, change(5, bob, 'updated', 'Bob')]))).toBe(5);
    const created_at = '2026-01-02 03:04:05.678';
    const expected = [
      { id: ann, name: 'Anna', email: 'Anna@x.test', created_at, gone: false },
      { id: bob, name: 'Bob', email: 'Bob@x.test', created_at, gone: true },
    ];
    if (b.hasSql) {
      expect(await rows(b, running)).toEqual(expected);
      expect(await rows(b, running, { username: 'reader' })).toEqual(expected);
    }
    expect(await b.driver.dropUsers(b.ref, 'app')).toBe(true);
    expect(await b.driver.dropUsers(b.ref, 'app')).toBe(true);
    expect(await b.driver.syncUsers(b.ref, table, inBatches(changes))).toBe(4);
  });

  test('stay with a copy of the branch, which goes its own way', async () => {
    const b = bench();
    await ready(b);
    const first = change(1, randomUUID(), 'created');
    await b.driver.syncUsers(b.ref, table, inBatches([first]));
    await b.driver.suspend(b.ref, 1);
    const child = { ...b.ref, branchId: newBranchId(), endpointId: newEndpointId() };
    await b.cloneBranch(child.branchId);
    const running = await b.start(1, child);
    if (b.hasSql) expect(await rows(b, running)).toHaveLength(1);
    const asked: number[] = [];
    await b.driver.syncUsers(child, table, async (position) => {
      asked.push(position);
      return [];
    });
    expect(asked).toEqual([1]);
  });

  test('of a database that there is not are an error', async () => {
    const b = bench();
    await ready(b);
    const elsewhere = { ...table, database: 'none' };
    await expect(b.driver.syncUsers(b.ref, elsewhere, inBatches([]))).rejects.toThrow(/none does not exist/);
  });

  test('are no role or database that a catalogue shows', async () => {
    const b = bench();
    await ready(b);
    await b.driver.syncUsers(b.ref, table, inBatches([]));
    const { roles } = await b.driver.readCatalog(b.ref);
    expect(roles.map((role) => role.name)).toEqual(['owner', 'reader']);
    expect((await b.driver.observeWork(b.ref)).work).toBeNull();
  });
}
