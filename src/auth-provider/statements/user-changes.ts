/**
 * Rows of `stack_user_changes`, the log that users-sync reads, and the webhook messages for these changes. Both are
 * written in the transaction that changes the user, by a writer that locks the project's row: numbers rise in the order
 * of the commits.
 */
import { json, one, type Sql, type Tx } from '../../db/client.ts';

/** Its payload is the project's id. */
export const userChangesChannel = 'stack_user_changes';

export type ChangeKind = 'created' | 'updated' | 'deleted';

export async function insertChange(
  tx: Tx,
  change: {
    readonly projectId: string;
    readonly userId: string;
    readonly kind: ChangeKind;
    readonly user: object;
    readonly at: Date;
  },
): Promise<void> {
  const { projectId, userId, kind, user, at } = change;
  const { seq } = one(
    await tx<{ seq: number }[]>`
      insert into stack_user_changes (project_id, user_id, kind, user_json, occurred_at)
      values (${projectId}, ${userId}, ${kind}, ${json(tx, user)}, ${at}) returning seq`,
  );
  const body = JSON.stringify({ type: `user.${kind}`, data: user });
  await tx`
    insert into stack_webhook_messages (endpoint_id, seq, body, created_at, due_at)
    select id, ${seq}, ${body}, ${at}, ${at} from stack_webhook_endpoints where project_id = ${projectId} and disabled_at is null`;
  await tx`select pg_notify(${userChangesChannel}, ${projectId})`;
}

/**
 * A change that is superseded by a later one of the same user carries nothing new, so it may be deleted: a reader that
 * continues from any number still sees the last state of every user.
 */
export async function deleteOvertakenChanges(sql: Sql, olderThan: Date): Promise<number> {
  const { count } = await sql`
    delete from stack_user_changes c where occurred_at < ${olderThan}
      and exists (select from stack_user_changes later where later.user_id = c.user_id and later.seq > c.seq)`;
  return count;
}
