/** What kind of credential a request carries. */
import { Type } from 'typebox';

export const AuthDetailsReply = Type.Object({
  account_id: Type.String({ description: 'User or organization that the key belongs to.' }),
  auth_method: Type.Enum(['api_key_user', 'api_key_org'], {
    description: 'A personal key, or a key of an organization (also when it is limited to one project).',
  }),
  auth_data: Type.Optional(Type.String({ description: 'Number of the key.' })),
});
