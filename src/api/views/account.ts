/** The caller, organizations, regions and the credential: row to wire. */
import type { Static } from 'typebox';
import type { Caller } from '../../core/access.ts';
import type { getCurrentUser, Organization } from '../../core/account.ts';
import type { Config } from '../../lib/config.ts';
import type { AuthDetailsReply } from '../schemas/auth-details.ts';
import type { Organization as OrganizationSchema } from '../schemas/organization.ts';
import type { RegionsReply } from '../schemas/region.ts';
import type { CurrentUserReply } from '../schemas/user.ts';
import { time } from './common.ts';
import { limitOf, subscriptionTypes } from './plan.ts';

export function currentUserView(
  { user, plan }: Awaited<ReturnType<typeof getCurrentUser>>,
  now: Date,
): Static<typeof CurrentUserReply> {
  return {
    id: user.id,
    login: user.login,
    email: user.email,
    name: user.name,
    last_name: user.lastName,
    image: '',
    plan: subscriptionTypes[plan.name],
    projects_limit: limitOf(plan.projectsMax),
    branches_limit: limitOf(plan.branchesPerProjectMax),
    max_autoscaling_limit: plan.cuMax,
    active_seconds_limit: 0,
    auth_accounts: [],
    billing_account: {
      state: 'active',
      payment_source: { type: '' },
      subscription_type: subscriptionTypes[plan.name],
      payment_method: 'none',
      quota_reset_at_last: time(new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), 1))),
      name: user.name,
      email: user.email,
      address_city: '',
      address_country: '',
      address_line1: '',
      address_line2: '',
      address_postal_code: '',
      address_state: '',
    },
  };
}

export function organizationView(row: Organization): Static<typeof OrganizationSchema> {
  return {
    id: row.id,
    name: row.name,
    handle: row.handle,
    plan: subscriptionTypes[row.plan],
    created_at: time(row.createdAt),
    managed_by: 'console',
    updated_at: time(row.updatedAt),
  };
}

/** One installation is one region, somewhere. */
export function regionsView(config: Config): Static<typeof RegionsReply> {
  return { regions: [{ region_id: config.region, name: config.region, default: true, geo_lat: '', geo_long: '' }] };
}

export function authDetailsView(caller: Caller): Static<typeof AuthDetailsReply> {
  return {
    account_id: caller.organizationId ?? caller.userId,
    auth_method: caller.kind === 'personal' ? 'api_key_user' : 'api_key_org',
    auth_data: String(caller.keyId),
  };
}
