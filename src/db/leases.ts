/** How long a worker may work on an operation by itself: the lease decides which worker may write an outcome. */
import { randomBytes } from 'node:crypto';
import type { OperationId } from '../lib/ids.ts';
import type { Sql } from './client.ts';
import { operationsChannel, urgentPayload } from './operations.ts';

/**
 * The first half of a lease names the worker that holds it, so that the process in the place of one that died can end
 * the leases of its predecessor and nobody else's.
 */
export function newLease(workerId: string): string {
  return asUuid(`${workerId}${randomBytes(8).toString('hex')}`);
}

const asUuid = (hex: string) => hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');

/** For leases whose worker is gone: those of one worker, or all where nobody else can be working. */
export async function expireLeases(sql: Sql, workerId?: string): Promise<void> {
  const [from, to] = ['0', 'f'].map((digit) => asUuid(`${workerId}${digit.repeat(16)}`));
  const isOfWorker = workerId === undefined ? sql`true` : sql`lease between ${from ?? ''} and ${to ?? ''}`;
  await sql`update operations set lease_until = now() where lease_until > now() and ${isOfWorker}`;
}

/** For a worker that stops between two steps; another one goes on with the next. */
export async function releaseLease(sql: Sql, id: OperationId, lease: string): Promise<void> {
  await sql`
    with released as (
      update operations set lease = null, lease_until = null where id = ${id} and lease = ${lease} returning priority)
    select pg_notify(${operationsChannel}, case when priority > 0 then ${urgentPayload} else '' end) from released`;
}

export async function extendLease(sql: Sql, id: OperationId, lease: string, leaseMs: number): Promise<boolean> {
  const rows = await sql`
    update operations set lease_until = now() + ${leaseMs} * interval '1 ms'
    where id = ${id} and lease = ${lease} returning 1`;
  return rows.length > 0;
}
