/** Codes that arrive by mail: for forgotten passwords, and for verifying addresses. */
import { Type } from '@fastify/type-provider-typebox';
import { requireCode, resetPassword, sendResetCode, verifyEmail } from '../core/codes.ts';
import { requireTrustedUrl } from '../core/domains.ts';
import type { Limits } from '../core/limits.ts';
import type { AuthProviderParts } from '../core/parts.ts';
import { normalEmail } from '../core/user-input.ts';
import type { AuthProviderApp } from '../http/app-type.ts';
import { closed, WebUrl } from '../http/schemas.ts';
import { selectDomains } from '../statements/domains.ts';
import { callerOf, guarded } from './access.ts';
import { requirePasswordSignIn } from './passwords.ts';

const Code = Type.String({ minLength: 1, maxLength: 200 });
const ForgotBody = Type.Object({ email: Type.String({ maxLength: 300 }), callback_url: WebUrl }, closed);
const ResetBody = Type.Object({ code: Code, password: Type.String({ maxLength: 1000 }) }, closed);
const CodeBody = Type.Object({ code: Code }, closed);

const client = guarded('client');
const takesCode = { ...client, schema: { ...client.schema, body: CodeBody } };

export function codeRoutes(app: AuthProviderApp, parts: AuthProviderParts, limits: Limits): void {
  app.post(
    '/auth/password/send-reset-code',
    { ...client, schema: { ...client.schema, body: ForgotBody } },
    async (request) => {
      const { project } = callerOf(request);
      const { email, callback_url: callbackUrl } = request.body;
      requirePasswordSignIn(project);
      requireTrustedUrl(project, await selectDomains(parts.database.sql, project.id), callbackUrl);
      limits.address('code', request.ip);
      limits.mail(`${project.id} ${normalEmail(email)}`);
      await sendResetCode(parts, project, email, callbackUrl);
      return { success: 'maybe' };
    },
  );

  app.post('/auth/password/reset/check-code', takesCode, async (request) => {
    limits.address('code', request.ip);
    await requireCode(parts, 'password_reset', request.body.code, callerOf(request).project.id);
    return { is_code_valid: true };
  });

  app.post('/auth/password/reset', { ...client, schema: { ...client.schema, body: ResetBody } }, async (request) => {
    const { project } = callerOf(request);
    requirePasswordSignIn(project);
    limits.address('code', request.ip);
    await resetPassword(parts, project.id, request.body.code, request.body.password);
    return { success: true };
  });

  app.post('/contact-channels/verify/check-code', takesCode, async (request) => {
    limits.address('code', request.ip);
    await requireCode(parts, 'email_verification', request.body.code, callerOf(request).project.id);
    return { is_code_valid: true };
  });

  app.post('/contact-channels/verify', takesCode, async (request) => {
    limits.address('code', request.ip);
    await verifyEmail(parts, callerOf(request).project.id, request.body.code);
    return { success: true };
  });
}
