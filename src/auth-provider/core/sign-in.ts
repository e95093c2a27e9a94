/** Sign-in and sign-up with a password. The API and the provider's own pages use the same functions. */
import { known, schemaError } from '../http/errors.ts';
import type { ProjectRow } from '../statements/projects.ts';
import { selectUserByLogin, type UserRow } from '../statements/users.ts';
import type { Limits } from './limits.ts';
import { sendCodeMail } from './mails.ts';
import type { AuthProviderParts } from './parts.ts';
import { hashPassword, isPassword, requireGoodPassword } from './passwords.ts';
import { createUser } from './user-commands.ts';
import { normalEmail } from './user-input.ts';

/** A wrong password and a missing account get the same answer, after the same work. */
export async function signIn(
  parts: AuthProviderParts,
  limits: Limits,
  projectId: string,
  attempt: { readonly email: string; readonly password: string; readonly from: string },
): Promise<UserRow> {
  const email = normalEmail(attempt.email);
  limits.address('signIn', attempt.from);
  const guess = limits.guess(`${projectId} ${email}`, attempt.from);
  const user = await selectUserByLogin(parts.database.sql, projectId, email);
  const isRight = await isPassword(user?.passwordHash ?? null, attempt.password);
  if (user === undefined || !isRight) {
    throw known('EMAIL_PASSWORD_MISMATCH', 'The e-mail address or the password is not right.');
  }
  guess.succeeded();
  return user;
}

export async function signUp(
  parts: AuthProviderParts,
  project: ProjectRow,
  order: {
    readonly email: string;
    readonly password: string;
    readonly displayName?: string;
    readonly callbackUrl?: string | undefined;
  },
): Promise<UserRow> {
  if (!project.signUpEnabled) throw known('SIGN_UP_NOT_ENABLED', 'This project does not take new accounts.');
  const email = requireEmail(order.email);
  requireGoodPassword(order.password);
  const user = await createUser(parts, project.id, {
    primaryEmail: email,
    primaryEmailAuthEnabled: true,
    passwordHash: await hashPassword(order.password),
    displayName: order.displayName ?? null,
  });
  if (order.callbackUrl !== undefined) {
    const { callbackUrl } = order;
    await sendCodeMail(parts, project, { ...user, primaryEmail: email }, { kind: 'email_verification', callbackUrl });
  }
  return user;
}

/** Stricter than for servers: the user must be able to get mail there. */
const strictEmail =
  /^[a-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*@[a-z0-9-]+(\.[a-z0-9-]+)*\.[a-z0-9-]{2,}$/;

export function requireEmail(text: string): string {
  const email = normalEmail(text);
  if (email.length > 256 || !strictEmail.test(email)) throw schemaError('body.email must be a valid e-mail address');
  return email;
}
