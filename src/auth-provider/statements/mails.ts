/** Rows of `stack_mails`: the outbox. */
import { first, type Sql } from '../../db/client.ts';

export const mailsChannel = 'stack_mails';

export type MailKind = 'password_reset' | 'email_verification';

export interface MailRow {
  readonly id: number;
  readonly projectId: string;
  readonly kind: MailKind;
  readonly recipient: string;
  readonly subject: string;
  /** Sealed with the key file. */
  readonly body: Uint8Array;
  readonly createdAt: Date;
  readonly attempts: number;
  readonly sentAt: Date | null;
  readonly givenUpAt: Date | null;
  readonly lastError: string | null;
}

export async function insertMail(
  sql: Sql,
  mail: Pick<MailRow, 'projectId' | 'kind' | 'recipient' | 'subject' | 'body' | 'createdAt'>,
): Promise<void> {
  await sql`insert into stack_mails ${sql({ ...mail, dueAt: mail.createdAt })}`;
  await sql`select pg_notify(${mailsChannel}, '')`;
}

/** The newest first; `before` is the id that the previous page ended with. */
export async function selectMails(
  sql: Sql,
  page: { readonly limit: number; readonly before?: number | undefined },
): Promise<(MailRow & { readonly projectName: string })[]> {
  return sql<(MailRow & { projectName: string })[]>`
    select m.*, p.display_name as project_name from stack_mails m join stack_projects p on p.id = m.project_id
    where ${page.before === undefined ? sql`true` : sql`m.id < ${page.before}`}
    order by m.id desc limit ${page.limit}`;
}

/** A mail that could not be sent for this long is obsolete; its code has expired. */
const newsMs = 24 * 3_600_000;

/**
 * Claims the next mail that is due, by postponing it for as long as an attempt may take: another process leaves it
 * alone until then, and if this one dies the mail is tried again.
 */
export async function claimMail(sql: Sql, now: Date, until: Date): Promise<MailRow | undefined> {
  const tooOld = new Date(now.getTime() - newsMs);
  return first(
    await sql<MailRow[]>`
      update stack_mails set attempts = attempts + 1, due_at = ${until} where id = (
        select id from stack_mails where sent_at is null and given_up_at is null and created_at > ${tooOld}
          and due_at <= ${now}
        order by due_at limit 1 for update skip locked)
      returning *`,
  );
}

export async function updateMail(
  sql: Sql,
  id: number,
  outcome: { readonly sentAt: Date } | { readonly error: string; readonly dueAt: Date | null; readonly at: Date },
): Promise<void> {
  if ('sentAt' in outcome) {
    await sql`update stack_mails set sent_at = ${outcome.sentAt}, last_error = null where id = ${id}`;
    return;
  }
  const { error, dueAt, at } = outcome;
  await sql`
    update stack_mails set last_error = ${error}, due_at = coalesce(${dueAt}, due_at),
      given_up_at = ${dueAt === null ? at : null}
    where id = ${id}`;
}

export async function deleteOldMails(sql: Sql, createdBefore: Date): Promise<number> {
  return (await sql`delete from stack_mails where created_at < ${createdBefore}`).count;
}
