/** Rows of `webhooks` and `webhook_deliveries`. */
import type { ProjectId, WebhookId } from '../lib/ids.ts';
import { assignments, first, one, type Sql } from './client.ts';
import type { OperationRow } from './operations.ts';

export const webhookEvents = ['operation.ended', 'compute.woke', 'quota.near', 'backup.late'] as const;
export type WebhookEvent = (typeof webhookEvents)[number];

export interface WebhookRow {
  readonly id: WebhookId;
  readonly projectId: ProjectId;
  readonly url: string;
  readonly events: readonly WebhookEvent[];
  readonly secret: Uint8Array;
  readonly isEnabled: boolean;
  readonly failingSince: Date | null;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

export type NewWebhook = Pick<WebhookRow, 'id' | 'projectId' | 'url' | 'events' | 'secret' | 'isEnabled'>;

export async function insertWebhook(sql: Sql, row: NewWebhook): Promise<WebhookRow> {
  return one(await sql<WebhookRow[]>`insert into webhooks ${sql({ ...row, events: [...row.events] })} returning *`);
}

export async function selectWebhooks(sql: Sql, projectId: ProjectId): Promise<WebhookRow[]> {
  return sql<WebhookRow[]>`select * from webhooks where project_id = ${projectId} order by created_at, id`;
}

export async function selectWebhook(sql: Sql, projectId: ProjectId, id: WebhookId): Promise<WebhookRow | undefined> {
  return first(await sql<WebhookRow[]>`select * from webhooks where project_id = ${projectId} and id = ${id}`);
}

export type WebhookChange = Partial<Pick<WebhookRow, 'url' | 'events' | 'isEnabled' | 'failingSince'>>;

export async function updateWebhook(
  sql: Sql,
  id: WebhookId,
  { events, ...others }: WebhookChange,
): Promise<WebhookRow> {
  const change = { ...others, ...(events !== undefined && { events: sql.array([...events]) }) };
  return one(await sql<WebhookRow[]>`update webhooks ${assignments(sql, change)} where id = ${id} returning *`);
}

export async function deleteWebhookRow(sql: Sql, id: WebhookId): Promise<void> {
  await sql`delete from webhooks where id = ${id}`;
}

export interface WebhookDeliveryRow {
  readonly id: string;
  readonly webhookId: WebhookId;
  readonly eventId: string;
  readonly event: WebhookEvent;
  readonly body: string;
  readonly replayOf: string | null;
  readonly status: 'pending' | 'delivered' | 'failed';
  readonly attempts: number;
  readonly dueAt: Date;
  readonly responseStatus: number | null;
  readonly error: string | null;
  readonly createdAt: Date;
  readonly endedAt: Date | null;
}

export type NewDelivery = Pick<
  WebhookDeliveryRow,
  'id' | 'webhookId' | 'eventId' | 'event' | 'body' | 'replayOf' | 'dueAt' | 'createdAt'
>;

/** An event that the webhook has a delivery of already is left out. */
export async function insertDeliveries(sql: Sql, rows: readonly NewDelivery[]): Promise<void> {
  if (rows.length > 0) await sql`insert into webhook_deliveries ${sql([...rows])} on conflict do nothing`;
}

/** The newest first. */
export async function selectDeliveries(sql: Sql, webhookId: WebhookId, limit: number): Promise<WebhookDeliveryRow[]> {
  return sql<WebhookDeliveryRow[]>`
    select * from webhook_deliveries where webhook_id = ${webhookId} order by created_at desc, id limit ${limit}`;
}

export async function selectDeliveryOf(
  sql: Sql,
  webhookId: WebhookId,
  id: string,
): Promise<WebhookDeliveryRow | undefined> {
  return first(
    await sql<WebhookDeliveryRow[]>`
      select * from webhook_deliveries where webhook_id = ${webhookId} and id = ${id}`,
  );
}

/** A webhook that is told of something. */
export type Listener = Pick<WebhookRow, 'id' | 'projectId'>;

export async function selectListeners(sql: Sql, event: WebhookEvent): Promise<Listener[]> {
  return sql<Listener[]>`
    select w.id, w.project_id from webhooks w join projects p on p.id = w.project_id
    where w.is_enabled and ${event} = any(w.events) and p.deleting_at is null`;
}

export type EndedOperation = Pick<
  OperationRow,
  'id' | 'projectId' | 'branchId' | 'endpointId' | 'action' | 'status' | 'error' | 'failuresCount' | 'createdAt'
> & { readonly finishedAt: Date; readonly webhookId: WebhookId };

/**
 * Operations that have ended lately, for each webhook that was there by then, takes one of these events and has no
 * delivery of it yet. By the database's clock, which stamps operations.
 */
export async function selectEndedOperations(sql: Sql, event: WebhookEvent, seconds: number): Promise<EndedOperation[]> {
  return sql<EndedOperation[]>`
    select o.id, o.project_id, o.branch_id, o.endpoint_id, o.action, o.status, o.error, o.failures_count, o.created_at,
      o.finished_at, w.id as webhook_id
    from webhooks w join operations o on o.project_id = w.project_id
    where w.is_enabled and ${event} = any(w.events) and o.action is not null and o.finished_at >= w.created_at
      and o.updated_at >= clock_timestamp() - ${seconds} * interval '1 second'
      ${event === 'compute.woke' ? sql`and o.action = 'start_compute' and o.status = 'finished'` : sql``}
      and not exists (
        select from webhook_deliveries d where d.webhook_id = w.id and d.event_id = ${event}::text || ':' || o.id)
    order by o.finished_at limit 1000`;
}

export interface DueDelivery extends WebhookDeliveryRow {
  readonly url: string;
  readonly secret: Uint8Array;
  readonly failingSince: Date | null;
}

/**
 * Claims what is due by postponing it: if the process dies, it is sent again then. At most a few of each webhook, so
 * that one that hangs does not keep the others waiting.
 */
export async function claimDeliveries(
  sql: Sql,
  { now, until, ofEach }: { readonly now: Date; readonly until: Date; readonly ofEach: number },
): Promise<DueDelivery[]> {
  return sql<DueDelivery[]>`
    with due as (
      select d.id, row_number() over (partition by d.webhook_id order by d.due_at, d.id) as place
      from webhook_deliveries d join webhooks w on w.id = d.webhook_id
      where d.status = 'pending' and d.due_at <= ${now} and w.is_enabled),
    claimed as (
      update webhook_deliveries d set attempts = d.attempts + 1, due_at = ${until} from due
      where d.id = due.id and due.place <= ${ofEach} and d.status = 'pending' and d.due_at <= ${now}
      returning d.*)
    select c.*, w.url, w.secret, w.failing_since from claimed c join webhooks w on w.id = c.webhook_id`;
}

export interface Attempt {
  readonly at: Date;
  readonly responseStatus: number | null;
  /** Null when it was delivered. */
  readonly error: string | null;
  /** When it is tried again; null when this was the end. */
  readonly dueAt: Date | null;
  /** The webhook has failed for so long that it is left alone from now on. */
  readonly disables: boolean;
}

export async function recordAttempt(sql: Sql, { id, webhookId }: DueDelivery, attempt: Attempt): Promise<void> {
  const { at, responseStatus, error, dueAt, disables } = attempt;
  const status = error === null ? 'delivered' : dueAt === null ? 'failed' : 'pending';
  await sql`
    update webhook_deliveries set status = ${status}, response_status = ${responseStatus}, error = ${error},
      due_at = coalesce(${dueAt}, due_at), ended_at = ${dueAt === null ? at : null}
    where id = ${id}`;
  await sql`
    update webhooks set is_enabled = is_enabled and not ${disables},
      failing_since = case when ${error === null} then null else coalesce(failing_since, ${at}) end
    where id = ${webhookId}`;
}

/** What can happen again under the same name is kept for longer, or it would be reported again. */
export async function deleteOldWebhookDeliveries(
  sql: Sql,
  { now, days, namedDays }: { readonly now: Date; readonly days: number; readonly namedDays: number },
): Promise<number> {
  const before = (age: number) => new Date(now.getTime() - age * 86_400_000);
  const { count } = await sql`
    delete from webhook_deliveries where created_at < ${before(days)}
      and (event in ('operation.ended', 'compute.woke') or created_at < ${before(namedDays)})`;
  return count;
}
