/** Single-use codes: found, checked, and used up in the transaction that does what they are for. */

import type { Tx } from '../../db/client.ts';
import { delay } from '../../lib/clock.ts';
import { hashToken } from '../../lib/secrets.ts';
import { known } from '../http/errors.ts';
import { type CodeKind, type CodeRow, selectCode, useCode } from '../statements/codes.ts';
import { deleteOauthAccountsOfUser } from '../statements/oauth-accounts.ts';
import type { ProjectRow } from '../statements/projects.ts';
import { selectUserByLogin, type UserChange, type UserRow } from '../statements/users.ts';
import { sendCodeMail } from './mails.ts';
import type { AuthProviderParts } from './parts.ts';
import { hashPassword, requireGoodPassword } from './passwords.ts';
import { changeUser, type UpdateOptions } from './user-commands.ts';
import { normalEmail } from './user-input.ts';

/** Longer than the work takes, so that the response time does not reveal whether there was any. */
const answerMs = 150;

/** Returns the code's row if it is still valid; otherwise the error says what is wrong with it. */
export async function requireCode(
  parts: AuthProviderParts,
  kind: CodeKind,
  code: string,
  projectId?: string,
): Promise<CodeRow> {
  const row = await selectCode(parts.database.sql, kind, hashToken(code));
  if (row === undefined || (projectId !== undefined && row.projectId !== projectId)) throw codeNotFound();
  if (row.usedAt !== null) throw codeUsed();
  if (row.expiresAt <= parts.clock.now()) throw known('VERIFICATION_CODE_EXPIRED', 'The code has expired.');
  return row;
}

const codeNotFound = () => known('VERIFICATION_CODE_NOT_FOUND', 'There is no such code.');
export const codeUsed = () => known('VERIFICATION_CODE_ALREADY_USED', 'The code was used before.');

/** Mails a code to the user who signs in with this address; the caller does not learn whether there is one. */
export async function sendResetCode(
  parts: AuthProviderParts,
  project: ProjectRow,
  address: string,
  callbackUrl: string,
): Promise<void> {
  const email = normalEmail(address);
  const work = async () => {
    const user = await selectUserByLogin(parts.database.sql, project.id, email);
    if (user === undefined) return;
    await sendCodeMail(parts, project, { ...user, primaryEmail: email }, { kind: 'password_reset', callbackUrl });
  };
  await Promise.all([work(), delay(answerMs)]);
}

/**
 * Ends every session: anyone who knew the old password is out. The mail arrived, so the address is verified; if it was
 * not before, whoever entered it may be somebody else, who must not keep a way in through an OAuth account.
 */
export async function resetPassword(parts: AuthProviderParts, projectId: string, code: string, password: string) {
  requireGoodPassword(password);
  const row = await requireCode(parts, 'password_reset', code, projectId);
  const passwordHash = await hashPassword(password);
  const change = async (user: UserRow, tx: Tx) => {
    if (!user.primaryEmailVerified) await deleteOauthAccountsOfUser(tx, user.id);
    return { passwordHash, primaryEmailVerified: true };
  };
  await redeem(parts, row, change, { endSessionsExcept: null });
}

export async function verifyEmail(parts: AuthProviderParts, projectId: string, code: string): Promise<void> {
  const row = await requireCode(parts, 'email_verification', code, projectId);
  await redeem(parts, row, async () => ({ primaryEmailVerified: true }));
}

/** If the address has changed since, the code is void. */
async function redeem(
  parts: AuthProviderParts,
  code: CodeRow,
  change: (user: UserRow, tx: Tx) => Promise<UserChange>,
  options: UpdateOptions = {},
): Promise<void> {
  const apply = async (user: UserRow, tx: Tx) => {
    if (user.primaryEmail !== code.email) throw codeNotFound();
    if (!(await useCode(tx, code.id, parts.clock.now()))) throw codeUsed();
    return change(user, tx);
  };
  await changeUser(parts, code.projectId, code.userId ?? '', apply, options);
}
