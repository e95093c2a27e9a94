/** Codes that arrive by mail: forgotten passwords, and addresses to be verified. */
import { Type } from '@fastify/type-provider-typebox';
import { delay } from '../../../clock.ts';
import type { Tx } from '../../../db/client.ts';
import { hashToken } from '../../../secrets.ts';
import type { StackApp } from '../app-type.ts';
import { requireTrustedUrl } from '../domains.ts';
import { callerOf, guarded } from '../http/access.ts';
import { known } from '../http/errors.ts';
import type { Limits } from '../limits.ts';
import { sendCodeMail } from '../mails.ts';
import type { StackParts } from '../parts.ts';
import { hashPassword, requireGoodPassword } from '../passwords.ts';
import { requireGoodCode } from '../projects.ts';
import { type CodeKind, type CodeRow, selectCode, useCode } from '../store/codes.ts';
import { selectDomains } from '../store/domains.ts';
import { selectUserByLogin, type UserChange, type UserRow } from '../store/users.ts';
import { changeUser, type UpdateOptions } from '../users/commands.ts';
import { normalEmail } from '../users/input.ts';
import { requirePasswordSignIn } from './passwords.ts';
import { closed, WebUrl } from './schemas.ts';

const Code = Type.String({ minLength: 1, maxLength: 200 });
const ForgotBody = Type.Object({ email: Type.String({ maxLength: 300 }), callback_url: WebUrl }, closed);
const ResetBody = Type.Object({ code: Code, password: Type.String({ maxLength: 1000 }) }, closed);
const CodeBody = Type.Object({ code: Code }, closed);

const client = guarded('client');
/** Longer than the work takes, so that the time does not tell whether there was any. */
const answerMs = 150;

export function codeRoutes(app: StackApp, parts: StackParts, limits: Limits): void {
  const { sql } = parts.database;

  const findCode = async (kind: CodeKind, projectId: string, code: string, from: string): Promise<CodeRow> => {
    limits.address('code', from);
    const row = await selectCode(sql, kind, hashToken(code));
    return requireGoodCode(row?.projectId === projectId ? row : undefined, parts.clock.now());
  };

  app.post(
    '/auth/password/send-reset-code',
    { ...client, schema: { ...client.schema, body: ForgotBody } },
    async (request) => {
      const { project } = callerOf(request);
      const { callback_url: callbackUrl } = request.body;
      requirePasswordSignIn(project);
      requireTrustedUrl(project, await selectDomains(sql, project.id), callbackUrl);
      const email = normalEmail(request.body.email);
      limits.address('code', request.ip);
      limits.mail(`${project.id} ${email}`);
      const work = async () => {
        const user = await selectUserByLogin(sql, project.id, email);
        if (user === undefined) return;
        await sendCodeMail(parts, project, { ...user, primaryEmail: email }, { kind: 'password_reset', callbackUrl });
      };
      await Promise.all([work(), delay(answerMs)]);
      return { success: 'maybe' };
    },
  );

  app.post(
    '/auth/password/reset/check-code',
    { ...client, schema: { ...client.schema, body: CodeBody } },
    async (request) => {
      await findCode('password_reset', callerOf(request).project.id, request.body.code, request.ip);
      return { is_code_valid: true };
    },
  );

  app.post('/auth/password/reset', { ...client, schema: { ...client.schema, body: ResetBody } }, async (request) => {
    const { project } = callerOf(request);
    requirePasswordSignIn(project);
    requireGoodPassword(request.body.password);
    const code = await findCode('password_reset', project.id, request.body.code, request.ip);
    const passwordHash = await hashPassword(request.body.password);
    // The mail has arrived, so the address is theirs.
    await redeem(parts, code, { passwordHash, primaryEmailVerified: true }, { endSessionsExcept: null });
    return { success: true };
  });

  app.post(
    '/contact-channels/verify/check-code',
    { ...client, schema: { ...client.schema, body: CodeBody } },
    async (request) => {
      await findCode('email_verification', callerOf(request).project.id, request.body.code, request.ip);
      return { is_code_valid: true };
    },
  );

  app.post('/contact-channels/verify', { ...client, schema: { ...client.schema, body: CodeBody } }, async (request) => {
    const code = await findCode('email_verification', callerOf(request).project.id, request.body.code, request.ip);
    await redeem(parts, code, { primaryEmailVerified: true });
    return { success: true };
  });
}

/** The code is used up and the user changed in one transaction. An address that was changed since makes it void. */
async function redeem(
  parts: StackParts,
  code: CodeRow,
  change: UserChange,
  options: UpdateOptions = {},
): Promise<void> {
  const apply = async (user: UserRow, tx: Tx) => {
    if (user.primaryEmail !== code.email) throw known('VERIFICATION_CODE_NOT_FOUND', 'There is no such code.');
    if (!(await useCode(tx, code.id, parts.clock.now()))) {
      throw known('VERIFICATION_CODE_ALREADY_USED', 'The code was used before.');
    }
    return change;
  };
  await changeUser(parts, code.projectId, code.userId ?? '', apply, options);
}
