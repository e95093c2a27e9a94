import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { command, makeProject } from '../../test/helpers/commands.ts';
import { makeCore, type TestCore } from '../../test/helpers/core.ts';
import { eventually } from '../../test/helpers/eventually.ts';
import { computeKeys, enqueue } from '../core/operation.ts';
import type { ProjectId } from '../lib/ids.ts';
import { expireLeases, newLease, releaseLease } from './leases.ts';
import {
  cancelOperations,
  claimOperation,
  finishOperation,
  lockLeased,
  type OperationRow,
  operationsChannel,
  ordinaryPayload,
  selectOperations,
  urgentPayload,
} from './operations.ts';
import { lockProject } from './projects.ts';

let test: TestCore;
let projectId: ProjectId;
beforeAll(async () => {
  test = await makeCore();
  projectId = (await makeProject(test)).project.id;
});
afterAll(() => test.close());
beforeEach(() => test.core.database.sql`delete from operations`);

const queue = (keys: { exclusive?: string[]; shared?: string[]; priority?: number }) =>
  command(test, async (scope) => {
    await lockProject(scope.tx, projectId);
    return enqueue(scope, 'check_availability', { projectId, ...keys });
  });
const claim = (leaseMs = 60_000) => claimOperation(test.core.database.sql, randomUUID(), leaseMs);
const finish = (operation: OperationRow) =>
  test.core.database.transaction((tx) => finishOperation(tx, operation, 'finished'));

it('a page goes on behind an operation of the same millisecond', async () => {
  const { sql } = test.core.database;
  const older = await queue({});
  const newer = await queue({});
  await sql`update operations set created_at = '2026-01-01T00:00:00.000200Z' where id = ${older.id}`;
  await sql`update operations set created_at = '2026-01-01T00:00:00.000900Z' where id = ${newer.id}`;
  const [first] = await selectOperations(sql, projectId, { before: null, limit: 1 });
  expect(first?.id).toBe(newer.id);
  const next = await selectOperations(sql, projectId, { before: first?.cursor ?? '', limit: 1 });
  expect(next.map(({ id }) => id)).toEqual([older.id]);
});

describe('the operation queue', () => {
  it('calls workers when an operation ends only if something in its project waits', async () => {
    const called: string[] = [];
    const unlisten = await test.core.database.listen(operationsChannel, (payload) => called.push(payload));
    try {
      await eventually(() => expect(called).toEqual(['']));
      const first = await queue({ exclusive: ['one'] });
      const second = await queue({ exclusive: ['one'] });
      await finish(first);
      await eventually(() => expect(called.slice(1)).toEqual([ordinaryPayload, ordinaryPayload, '']));
      await finish(second);
      await queue({ priority: 1 });
      await eventually(() => expect(called.slice(4)).toEqual([urgentPayload]));
    } finally {
      await unlisten();
    }
  });

  it.each([
    ['start_compute', 'off'],
    ['suspend_compute', 'on'],
  ] as const)('commits a claim of %s with synchronous_commit %s', async (job, expected) => {
    const { endpoint } = await makeProject(test);
    await test.core.database.sql`delete from operations`;
    await command(test, async (scope) => {
      await lockProject(scope.tx, endpoint.projectId);
      await enqueue(scope, job, computeKeys(endpoint));
    });
    const during = await test.core.database.transaction(async (tx) => {
      // The server of the tests has it off.
      await tx`set local synchronous_commit = 'on'`;
      expect((await claimOperation(tx, randomUUID(), 60_000))?.job).toBe(job);
      return tx`select current_setting('synchronous_commit') as setting`;
    });
    expect([...during]).toEqual([{ setting: expected }]);
  });

  it('gives every operation of a project a later time than the one before, wherever the clock is', async () => {
    const first = await queue({ exclusive: ['a'] });
    const { sql } = test.core.database;
    await sql`update operations set created_at = now() + interval '1 hour' where id = ${first.id}`;
    await queue({ exclusive: ['a'] });
    const [row] = await sql`
      select array_agg(id order by sequence) = array_agg(id order by created_at) as is_ordered,
        count(distinct created_at)::int as times from operations`;
    expect(row).toEqual({ isOrdered: true, times: 2 });
  });

  it('writes the first of a chain as running and those behind it as scheduling', async () => {
    expect((await queue({ exclusive: ['a'] })).status).toBe('running');
    expect((await queue({ exclusive: ['a'] })).status).toBe('scheduling');
    expect((await queue({ shared: ['a'] })).status).toBe('scheduling');
    expect((await queue({ exclusive: ['b'] })).status).toBe('running');
  });

  it('runs conflicting operations in order and others side by side', async () => {
    const first = await queue({ exclusive: ['a'] });
    const second = await queue({ exclusive: ['a'] });
    const other = await queue({ exclusive: ['b'] });
    expect((await claim())?.id).toBe(first.id);
    expect((await claim())?.id).toBe(other.id);
    expect(await claim()).toBeUndefined();
    await finish(first);
    expect((await claim())?.id).toBe(second.id);
  });

  it('lets shared keys run together and keeps an exclusive one out', async () => {
    const readers = [await queue({ shared: ['a'] }), await queue({ shared: ['a'] })];
    const writer = await queue({ exclusive: ['a'] });
    expect([(await claim())?.id, (await claim())?.id]).toEqual(readers.map((reader) => reader.id));
    expect(await claim()).toBeUndefined();
    for (const reader of readers) await finish(reader);
    expect((await claim())?.id).toBe(writer.id);
  });

  it('takes what somebody waits for first', async () => {
    await queue({ exclusive: ['a'] });
    const urgent = await queue({ exclusive: ['b'], priority: 10 });
    expect((await claim())?.id).toBe(urgent.id);
  });

  it('gives what a dead worker held to the one that comes after it, which knows itself alone', async () => {
    const { id } = await queue({ exclusive: ['a'] });
    const lost = await claim();
    expect(await claim()).toBeUndefined();
    await expireLeases(test.core.database.sql);
    expect((await claim())?.id).toBe(id);
    const held = await test.core.database.transaction((tx) => lockLeased(tx, id, lost?.lease ?? ''));
    expect(held).toBeUndefined();
  });

  it('lets a worker end the leases of its predecessor, and not those of others', async () => {
    const { sql } = test.core.database;
    const operations = [await queue({ exclusive: ['a'] }), await queue({ exclusive: ['b'] })];
    const workers = ['0123456789ab0000', '0123456789ab0001'];
    for (const worker of workers) await claimOperation(sql, newLease(worker), 60_000);
    expect(await claim()).toBeUndefined();
    await expireLeases(sql, workers[1]);
    expect((await claim())?.id).toBe(operations[1]?.id);
    expect(await claim()).toBeUndefined();
  });

  it('gives an operation away that a worker hands back, which the worker then cannot write to', async () => {
    const { sql, transaction } = test.core.database;
    const { id } = await queue({ exclusive: ['a'] });
    const first = await claim();
    await releaseLease(sql, id, randomUUID());
    expect(await claim()).toBeUndefined();
    await releaseLease(sql, id, first?.lease ?? '');
    expect((await claim())?.id).toBe(id);
    expect(await transaction((tx) => lockLeased(tx, id, first?.lease ?? ''))).toBeUndefined();
  });

  it('gives an operation away when its lease has run out, and takes nothing from the one who lost it', async () => {
    await queue({ exclusive: ['a'] });
    const lost = await claim(0);
    const taken = await claim();
    expect(taken?.id).toBe(lost?.id);
    const held = await test.core.database.transaction((tx) => lockLeased(tx, taken?.id as never, lost?.lease ?? ''));
    expect(held).toBeUndefined();
  });

  it('claims each operation once, however many ask', async () => {
    for (let i = 0; i < 20; i++) await queue({ exclusive: [`key ${i}`] });
    const claimed = await Promise.all(Array.from({ length: 30 }, () => claim()));
    const ids = claimed.flatMap((operation) => (operation ? [operation.id] : []));
    expect(new Set(ids).size).toBe(20);
    expect(ids).toHaveLength(20);
  });

  it('cancels what has not begun at once and asks the worker of the rest', async () => {
    const worked = await queue({ exclusive: ['a'] });
    const waiting = await queue({ exclusive: ['a'] });
    await claim();
    await test.core.database.transaction((tx) => cancelOperations(tx, projectId, { except: [] }));
    const rows = await test.core.database.sql<OperationRow[]>`select id, status from operations`;
    const statuses = new Map(rows.map((row) => [row.id, row.status]));
    expect(statuses.get(worked.id)).toBe('cancelling');
    expect(statuses.get(waiting.id)).toBe('cancelled');
  });

  it('lets nobody go on with what was cancelled after its lease had run out', async () => {
    const { id } = await queue({ exclusive: ['a'] });
    const late = await claim(0);
    await test.core.database.transaction((tx) => cancelOperations(tx, projectId, { except: [] }));
    const [row] = await test.core.database.sql<OperationRow[]>`select * from operations where id = ${id}`;
    expect(row).toMatchObject({ status: 'cancelled', lease: null });
    const held = await test.core.database.transaction((tx) => lockLeased(tx, id, late?.lease ?? ''));
    expect(held).toBeUndefined();
  });
});
