/** The caller's own record. Some clients insist on the billing part, so it is there and says: nothing is billed. */
import { Type } from 'typebox';
import { time } from './common.ts';

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
