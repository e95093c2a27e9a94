/**
 * What an operation takes back in the rows of a branch when it is given up: changes that the branch's server has not
 * carried out, so that the rows are true again and no later operation fails at the same change.
 */
import type { BranchId, OperationId } from '../lib/ids.ts';
import type { ServerCatalog } from '../lib/model.ts';
import type { Fragment, Tx } from './client.ts';
import { unfinished } from './operations.ts';

/** The operation that is given up, and the branch whose server it worked on. */
export interface GivenUp {
  readonly id: OperationId;
  readonly branchId: BranchId;
}

/** How an operation says in its state which row it was queued for, and in which version. */
export function askedFor(kind: 'role' | 'database', row: { readonly id: number; readonly revision: number }): string {
  return `${kind}:${row.id}:${row.revision}`;
}

/** Takes back drops, except where the name is in use again by now. */
export async function restoreDroppedRoles(tx: Tx, givenUp: GivenUp): Promise<void> {
  await tx`
    update roles r set dropped_at = null, pending = false, revision = revision + 1
    where branch_id = ${givenUp.branchId} and dropped_at is not null and ${isNobodyElses(tx, 'role', givenUp)}
      and not exists (
        select 1 from roles o where o.branch_id = r.branch_id and o.name = r.name and o.dropped_at is null)`;
}

/** As for roles. */
export async function restoreDroppedDatabases(tx: Tx, givenUp: GivenUp): Promise<void> {
  await tx`
    update databases r set dropped_at = null, pending = false, revision = revision + 1
    where branch_id = ${givenUp.branchId} and dropped_at is not null and ${isNobodyElses(tx, 'database', givenUp)}
      and not exists (
        select 1 from databases o where o.branch_id = r.branch_id and o.name = r.name and o.dropped_at is null)`;
}

/**
 * Takes back names and owners: each database is again what its server holds, under its old name, or under the new one
 * if only the owner was refused.
 */
export async function restoreChangedDatabases(
  tx: Tx,
  givenUp: GivenUp,
  { databases }: Pick<ServerCatalog, 'databases'>,
): Promise<void> {
  const names = databases.map(({ name }) => name);
  const owners = databases.map(({ ownerName }) => ownerName);
  await tx`
    update databases r set name = s.name, owner_name = s.owner_name, applied_name = s.name, pending = false,
      revision = revision + 1
    from unnest(${names}::text[], ${owners}::text[]) as s(name, owner_name)
    where branch_id = ${givenUp.branchId} and pending and dropped_at is null and ${isNobodyElses(tx, 'database', givenUp)}
      and s.name = case when r.applied_name = any (${names}::text[]) then r.applied_name
        when r.applied_name is not null then r.name end
      and not exists (
        select 1 from databases o
        where o.branch_id = r.branch_id and o.name = s.name and o.dropped_at is null and o.id <> r.id)`;
}

/** Takes back new databases whose owner does not exist any more: no later operation could make them either. */
export async function deleteOwnerlessDatabases(tx: Tx, givenUp: GivenUp): Promise<void> {
  await tx`
    delete from databases r
    where branch_id = ${givenUp.branchId} and pending and applied_name is null and dropped_at is null
      and ${isNobodyElses(tx, 'database', givenUp)}
      and not exists (
        select 1 from roles o where o.branch_id = r.branch_id and o.name = r.owner_name and o.dropped_at is null)`;
}

/** Whether the row `r` is not what another operation was queued for, which will try it and report for itself. */
function isNobodyElses(tx: Tx, kind: 'role' | 'database', { id, branchId }: GivenUp): Fragment {
  return tx`not exists (
    select 1 from operations p
    where p.branch_id = ${branchId} and p.status in ${unfinished(tx)} and p.id <> ${id}
      and p.state ->> 'asked_for' = ${`${kind}:`}::text || r.id || ':' || r.revision)`;
}
