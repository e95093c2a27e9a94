/** Mails of the embedded auth provider. */
import { Type } from 'typebox';
import { limitQuery } from './pagination.ts';

export const OutboxQuery = Type.Object({
  limit: limitQuery(100, 20),
  before: Type.Optional(Type.Integer({ minimum: 1, description: 'Id of the last mail of the page before.' })),
});

export const OutboxReply = Type.Object({
  mails: Type.Array(
    Type.Object({
      id: Type.Integer({ description: 'Rises with time.' }),
      auth_provider_project_id: Type.String({ description: 'The project at the provider.' }),
      auth_provider_project_name: Type.String({ description: 'Its name.' }),
      kind: Type.String({ description: 'password_reset or email_verification.' }),
      to: Type.String({ description: 'The recipient.' }),
      subject: Type.String({ description: 'As the recipient sees it.' }),
      text: Type.String({ description: 'The whole mail, with its link.' }),
      status: Type.String({ description: 'stored (nothing was tried), sent, retrying or failed.' }),
      error: Type.Optional(Type.String({ description: 'What the mail server said last.' })),
      created_at: Type.String({ format: 'date-time', description: 'When it was written.' }),
    }),
  ),
});
