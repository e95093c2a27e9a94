/** What the provider deletes: ended sessions, codes and signing keys, old messages and mails, superseded changes. */
import type { Sql } from '../../db/client.ts';
import { deleteOldCodes } from '../statements/codes.ts';
import { deleteOldMails } from '../statements/mails.ts';
import { deleteOldOauthVisits } from '../statements/oauth-visits.ts';
import { deleteOldPageSessions } from '../statements/page-sessions.ts';
import { deleteOldSessions } from '../statements/sessions.ts';
import { deleteExpiredSigningKeys } from '../statements/signing-keys.ts';
import { deleteOvertakenChanges } from '../statements/user-changes.ts';
import { deleteOldMessages } from '../statements/webhooks.ts';

const dayMs = 86_400_000;

export async function forgetOldAuthProviderRecords(sql: Sql, now: Date): Promise<void> {
  const daysAgo = (days: number) => new Date(now.getTime() - days * dayMs);
  await deleteOldSessions(sql, now, daysAgo(30));
  await deleteOldPageSessions(sql, now);
  // Kept for a while, so that a late click gets the answer that the code has expired.
  await deleteOldCodes(sql, daysAgo(30));
  await deleteOldOauthVisits(sql, daysAgo(1));
  await deleteExpiredSigningKeys(sql, daysAgo(1));
  await deleteOldMessages(sql, daysAgo(30));
  await deleteOldMails(sql, daysAgo(30));
  await deleteOvertakenChanges(sql, daysAgo(7));
}
