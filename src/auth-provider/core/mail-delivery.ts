/** Sends the outbox by SMTP, where a server is configured. Without one, mails stay in the outbox for people to read. */
import { createTransport } from 'nodemailer';
import { errorText } from '../../lib/errors.ts';
import { claimMail, updateMail } from '../statements/mails.ts';
import { openMail } from './mails.ts';
import type { AuthProviderParts } from './parts.ts';

export interface MailSettings {
  /** `smtp://` or `smtps://`, with user and password. */
  readonly smtpUrl: string;
  readonly from: string;
}

export interface Mailer {
  /** Sends one mail, if one is due. */
  sendNext(parts: AuthProviderParts): Promise<boolean>;
  close(): void;
}

const attemptMs = 30_000;
const minuteMs = 60_000;
/** The wait after each failure; the failure after the last wait is final. */
const waitsMs = [10_000, minuteMs, 5 * minuteMs, 30 * minuteMs, 120 * minuteMs];

export function createMailer({ smtpUrl, from }: MailSettings): Mailer {
  const transport = createTransport({
    url: smtpUrl,
    connectionTimeout: attemptMs,
    greetingTimeout: attemptMs,
    socketTimeout: attemptMs,
    // Mails have no attachments; nothing is read from this machine or fetched from elsewhere.
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  return {
    async sendNext(parts) {
      const begunAt = parts.clock.now();
      const mail = await claimMail(parts.database.sql, begunAt, new Date(begunAt.getTime() + 2 * attemptMs));
      if (mail === undefined) return false;
      try {
        const to = { name: '', address: mail.recipient };
        await transport.sendMail({ from, to, subject: mail.subject, text: openMail(parts, mail) });
        await updateMail(parts.database.sql, mail.id, { sentAt: parts.clock.now() });
      } catch (error) {
        const at = parts.clock.now();
        const waitMs = waitsMs[mail.attempts - 1];
        const dueAt = waitMs === undefined ? null : new Date(at.getTime() + waitMs);
        await updateMail(parts.database.sql, mail.id, { error: errorText(error).slice(0, 500), dueAt, at });
      }
      return true;
    },
    close: () => transport.close(),
  };
}
