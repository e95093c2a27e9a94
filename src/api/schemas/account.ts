/**
 * The caller's own record, the kind of credential that a request carries, and regions. Some clients insist on the
 * billing part of the record, so it is there and says: nothing is billed.
 */
import { Type } from 'typebox';
import { apiKeyScopes } from '../../core/api-key.ts';
import { idOf, time } from './common.ts';

const text = (description: string) => Type.String({ description });

const BillingAccount = Type.Object(
  {
    state: text('Always active.'),
    payment_source: Type.Object({ type: text('Always empty.') }),
    subscription_type: text('The plan, in words that clients know.'),
    payment_method: text('Always none.'),
    quota_reset_at_last: time('Start of the current period.'),
    name: text('Name of the account.'),
    email: text('Address of the account.'),
    address_city: text('Empty.'),
    address_country: text('Empty.'),
    address_line1: text('Empty.'),
    address_line2: text('Empty.'),
    address_postal_code: text('Empty.'),
    address_state: text('Empty.'),
  },
  { description: 'Nothing is billed; the record exists because clients read it.' },
);

export const CurrentUserReply = Type.Object(
  {
    id: text('Id of the user.'),
    login: text('Login name.'),
    email: text('Address.'),
    name: text('First name.'),
    last_name: text('Last name.'),
    image: text('URL of a picture, or empty.'),
    plan: text('Plan of the account.'),
    projects_limit: Type.Integer({ description: 'Projects that the plan allows.' }),
    branches_limit: Type.Integer({ description: 'Branches of one project that the plan allows.' }),
    max_autoscaling_limit: Type.Number({ description: 'Largest compute in units; 0 is no limit.' }),
    active_seconds_limit: Type.Integer({ description: 'Awake seconds that the plan allows; 0 is no limit.' }),
    auth_accounts: Type.Array(
      Type.Object({
        email: text('Address.'),
        image: text('URL of a picture, or empty.'),
        login: text('Login name.'),
        name: text('Name.'),
        provider: text('Where the login comes from.'),
      }),
    ),
    billing_account: BillingAccount,
  },
  { $id: 'CurrentUser', description: 'The user that the key belongs to.' },
);

export const AuthDetailsReply = Type.Object({
  account_id: Type.String({ description: 'User or organization that the key belongs to.' }),
  auth_method: Type.Enum(['api_key_user', 'api_key_org'], {
    description: 'A personal key, or a key of an organization (also when it is limited to one project).',
  }),
  auth_data: Type.Optional(Type.String({ description: 'Number of the key.' })),
  scope: Type.Enum([...apiKeyScopes], { description: 'What the key may do, an addition of Catnap’s.' }),
  project_id: Type.Optional(idOf('only project that the key reaches, an addition of Catnap’s')),
  expires_at: Type.Optional(time('When the key stops working, an addition of Catnap’s; absent is never.')),
});

/** One installation has one region. */
export const RegionsReply = Type.Object({
  regions: Type.Array(
    Type.Object({
      region_id: Type.String({ description: 'What `region_id` of a new project may be.' }),
      name: Type.String({ description: 'Name for people.' }),
      default: Type.Boolean({ description: 'Used when a request names none.' }),
      geo_lat: Type.String({ description: 'Latitude, as text.' }),
      geo_long: Type.String({ description: 'Longitude, as text.' }),
    }),
  ),
});
export const RegionsQuery = Type.Object({ org_id: Type.Optional(idOf('organization')) });
