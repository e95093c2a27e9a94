/** Rows of `stack_webhook_endpoints` and `stack_webhook_messages`. */
import type { Sql } from '../../../db/client.ts';

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
