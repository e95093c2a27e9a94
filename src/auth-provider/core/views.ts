/** Projects and key sets as the API returns them. */

import type { DomainRow } from '../statements/domains.ts';
import type { KeySetRow } from '../statements/key-sets.ts';
import type { OauthProviderRow } from '../statements/oauth-providers.ts';
import type { ProjectRow } from '../statements/projects.ts';
import { projectIdOnWire } from './internal-project.ts';

/** What a project's own clients may see. */
export function clientProjectView(
  project: ProjectRow,
  domains: readonly DomainRow[],
  oauthProviders: readonly OauthProviderRow[],
) {
  return {
    id: projectIdOnWire(project.id),
    display_name: project.displayName,
    logo_url: null,
    logo_full_url: null,
    logo_dark_mode_url: null,
    logo_full_dark_mode_url: null,
    config: {
      sign_up_enabled: project.signUpEnabled,
      credential_enabled: project.credentialEnabled,
      magic_link_enabled: false,
      passkey_enabled: false,
      client_team_creation_enabled: false,
      client_user_deletion_enabled: project.clientUserDeletionEnabled,
      allow_user_api_keys: false,
      allow_team_api_keys: false,
      enabled_oauth_providers: oauthProviders.map(({ id }) => ({ id })),
      domains: domains.map(({ domain, handlerPath }) => ({ domain, handler_path: handlerPath })),
    },
  };
}

export function adminProjectView(
  project: ProjectRow,
  domains: readonly DomainRow[],
  oauthProviders: readonly OauthProviderRow[],
) {
  const client = clientProjectView(project, domains, oauthProviders);
  return {
    ...client,
    description: project.description ?? '',
    created_at_millis: project.createdAt.getTime(),
    is_production_mode: project.isProductionMode,
    onboarding_status: 'completed',
    owner_team_id: project.ownerTeamId,
    config: {
      ...client.config,
      allow_localhost: project.allowLocalhost,
      require_publishable_client_key: project.requirePublishableClientKey,
      create_team_on_sign_up: false,
      email_config: { type: 'shared' },
      email_theme: null,
      oauth_account_merge_strategy: 'link_method',
      oauth_providers: oauthProviders.map(({ id }) => ({ id, provider_config_id: id, type: 'standard' })),
      team_creator_default_permissions: [],
      team_member_default_permissions: [],
      user_default_permissions: [],
    },
  };
}

export function keySetView(set: KeySetRow) {
  const lastFour = (text: string | null) => (text === null ? undefined : { last_four: text });
  return {
    ...keySetFacts(set),
    publishable_client_key: lastFour(set.publishableLastFour),
    secret_server_key: lastFour(set.secretLastFour),
    super_secret_admin_key: lastFour(set.adminLastFour),
  };
}

export function keySetFacts(set: KeySetRow) {
  return {
    id: set.id,
    description: set.description,
    created_at_millis: set.createdAt.getTime(),
    expires_at_millis: set.expiresAt.getTime(),
    manually_revoked_at_millis: set.revokedAt?.getTime(),
  };
}
