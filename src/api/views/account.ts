/** The caller, organizations and their plans, regions and the credential: row to wire. */
import type { Static } from 'typebox';
import type { Caller } from '../../core/access.ts';
import type { getCurrentUser, Organization } from '../../core/account.ts';
import type { Config, PlanName } from '../../lib/config.ts';
import type { AuthDetailsReply, CurrentUserReply, RegionsReply } from '../schemas/account.ts';
import type { Organization as OrganizationSchema } from '../schemas/organization.ts';
import { optionalTime, present, time } from './common.ts';

/** The Python SDK knows no newer words than these. */
export const subscriptionTypes: Readonly<Record<PlanName, string>> = {
  free: 'free_v2',
  launch: 'launch',
  scale: 'scale',
};

/** The wire has no word for "no limit", and clients compare counts with the number. */
export function limitOf(max: number | null): number {
  return max ?? 1_000_000;
}

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
    scope: caller.scope,
    ...present({ project_id: caller.projectId, expires_at: optionalTime(caller.expiresAt) }),
  };
}
