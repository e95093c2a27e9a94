/** Rows of `stack_webhook_endpoints` and `stack_webhook_messages`. */
import { first, type Sql } from '../../db/client.ts';

export interface WebhookEndpointRow {
  readonly id: string;
  readonly projectId: string;
  readonly url: string;
  readonly description: string;
  readonly secret: Uint8Array;
}

export async function countWebhookEndpoints(sql: Sql, projectId: string): Promise<number> {
  const [row] = await sql<{ count: number }[]>`
    select count(*)::int as count from stack_webhook_endpoints where project_id = ${projectId}`;
  return row?.count ?? 0;
}

export async function insertWebhookEndpoint(sql: Sql, endpoint: WebhookEndpointRow): Promise<void> {
  await sql`insert into stack_webhook_endpoints ${sql({ ...endpoint })}`;
}

export interface WebhookMessageRow {
  readonly id: string;
  readonly endpointId: string;
  readonly body: string;
  readonly attempts: number;
  readonly url: string;
  readonly secret: Uint8Array;
  readonly failingSince: Date | null;
}

/**
 * Claims the next message that is due, by postponing it for as long as an attempt may take: another process leaves it
 * alone until then, and if this one dies the message is sent again.
 */
export async function claimMessage(sql: Sql, now: Date, until: Date): Promise<WebhookMessageRow | undefined> {
  return first(
    await sql<WebhookMessageRow[]>`
      with claimed as (
        update stack_webhook_messages set attempts = attempts + 1, due_at = ${until} where id = (
          select m.id from stack_webhook_messages m join stack_webhook_endpoints e on e.id = m.endpoint_id
          where m.delivered_at is null and m.given_up_at is null and e.disabled_at is null
            and m.due_at <= ${now}
          order by m.due_at, m.seq limit 1 for update of m skip locked)
        returning *)
      select c.id, c.endpoint_id, c.body, c.attempts, e.url, e.secret, e.failing_since
      from claimed c join stack_webhook_endpoints e on e.id = c.endpoint_id`,
  );
}

export async function markDelivered(sql: Sql, message: WebhookMessageRow, at: Date): Promise<void> {
  await sql`update stack_webhook_messages set delivered_at = ${at}, last_error = null where id = ${message.id}`;
  if (message.failingSince === null) return;
  await sql`update stack_webhook_endpoints set failing_since = null where id = ${message.endpointId}`;
}

/** Without a next time the message is given up. */
export async function markFailed(
  sql: Sql,
  message: WebhookMessageRow,
  failure: { readonly error: string; readonly at: Date; readonly dueAt: Date | null; readonly disables: boolean },
): Promise<void> {
  const { error, at, dueAt, disables } = failure;
  await sql`
    update stack_webhook_messages set last_error = ${error}, due_at = coalesce(${dueAt}, due_at),
      given_up_at = ${dueAt === null ? at : null}
    where id = ${message.id}`;
  await sql`
    update stack_webhook_endpoints set failing_since = coalesce(failing_since, ${at}),
      disabled_at = ${disables ? at : null}
    where id = ${message.endpointId}`;
}

export async function deleteOldMessages(sql: Sql, createdBefore: Date): Promise<void> {
  await sql`delete from stack_webhook_messages where created_at < ${createdBefore}`;
}

/** The context that a webhook secret is sealed with. */
export const webhookSealContext = (endpointId: string) => `stack-webhook:${endpointId}`;
