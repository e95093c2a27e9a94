/** Mails to users: written to the outbox in one transaction with the code that they carry, and sent later. */
import { randomUUID } from 'node:crypto';
import { hashToken } from '../../lib/secrets.ts';
import { deleteCodesOfUser, insertCode } from '../statements/codes.ts';
import { insertMail, type MailKind, type MailRow } from '../statements/mails.ts';
import type { ProjectRow } from '../statements/projects.ts';
import type { UserRow } from '../statements/users.ts';
import type { AuthProviderParts } from './parts.ts';
import { newToken } from './tokens.ts';

const hourMs = 3_600_000;

const letters: Readonly<Record<MailKind, { lastsMs: number; lasts: string; subject: string; what: string }>> = {
  password_reset: {
    lastsMs: 2 * hourMs,
    lasts: 'two hours',
    subject: 'Reset your password',
    what: 'Somebody, probably you, asked for a new password. Choose it here:',
  },
  email_verification: {
    lastsMs: 7 * 24 * hourMs,
    lasts: 'seven days',
    subject: 'Verify your e-mail address',
    what: 'Please confirm that this e-mail address is yours:',
  },
};

export async function sendCodeMail(
  parts: AuthProviderParts,
  project: ProjectRow,
  user: UserRow & { readonly primaryEmail: string },
  mail: { readonly kind: MailKind; readonly callbackUrl: string },
): Promise<void> {
  const code = newToken();
  const link = new URL(mail.callbackUrl);
  link.searchParams.set('code', code);
  const letter = letters[mail.kind];
  const text = [
    `Hello${greetingName(user.displayName)},`,
    letter.what,
    link.href,
    `The link works once, for ${letter.lasts}. If you did not ask for it, there is nothing to do.`,
    project.displayName,
  ].join('\n\n');
  const recipient = user.primaryEmail;
  await parts.database.transaction(async (tx) => {
    await deleteCodesOfUser(tx, mail.kind, user.id);
    await insertCode(tx, {
      id: randomUUID(),
      projectId: project.id,
      kind: mail.kind,
      codeHash: hashToken(code),
      userId: user.id,
      email: recipient,
      expiresAt: new Date(parts.clock.now().getTime() + letter.lastsMs),
    });
    await insertMail(tx, {
      projectId: project.id,
      kind: mail.kind,
      recipient,
      subject: `${letter.subject} for ${oneLine(project.displayName)}`,
      body: parts.box.seal(text, sealContext(recipient)),
      createdAt: parts.clock.now(),
    });
  });
}

export function openMail(parts: Pick<AuthProviderParts, 'box'>, mail: MailRow): string {
  return parts.box.open(mail.body, sealContext(mail.recipient));
}

const sealContext = (recipient: string) => `stack-mail:${recipient}`;

/** A line break in a subject would begin another header. */
const oneLine = (text: string) => text.replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ').slice(0, 100);

/** Users choose their names, and could put their own text into a mail to someone else: a link, whole lines. */
function greetingName(name: string | null): string {
  return name !== null && /^[\p{L}\p{M}\p{N} '’-]{1,64}$/u.test(name) ? ` ${name}` : '';
}
