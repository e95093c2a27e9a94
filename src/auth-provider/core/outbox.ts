/** The outbox as people see it, instead of a mail server or beside one. */

import { selectMails } from '../statements/mails.ts';
import { openMail } from './mails.ts';
import type { AuthProviderParts } from './parts.ts';

export interface OutboxMail {
  readonly id: number;
  readonly projectId: string;
  readonly projectName: string;
  readonly kind: string;
  readonly to: string;
  readonly subject: string;
  readonly text: string;
  readonly createdAt: Date;
  /** Not tried (`stored`), accepted by the SMTP server, to be tried again, or given up. */
  readonly status: 'stored' | 'sent' | 'retrying' | 'failed';
  readonly error: string | null;
}

/** The newest first; `before` is the id of the last mail of the previous page. */
export async function listOutbox(
  parts: AuthProviderParts,
  page: { readonly limit: number; readonly before?: number | undefined },
): Promise<OutboxMail[]> {
  const rows = await selectMails(parts.database.sql, page);
  return rows.map((row) => ({
    id: row.id,
    projectId: row.projectId,
    projectName: row.projectName,
    kind: row.kind,
    to: row.recipient,
    subject: row.subject,
    text: openMail(parts, row),
    createdAt: row.createdAt,
    status: row.sentAt ? 'sent' : row.givenUpAt ? 'failed' : row.attempts > 0 ? 'retrying' : 'stored',
    error: row.lastError,
  }));
}
