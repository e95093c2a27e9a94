/** Users as the API returns them: complete to servers, less to the user's own client. */
import type { UserRow } from '../statements/users.ts';

export function restrictedReason(user: UserRow): { type: string } | null {
  if (user.isAnonymous) return { type: 'anonymous' };
  return user.restrictedByAdmin ? { type: 'restricted_by_administrator' } : null;
}

export function clientUserView(user: UserRow) {
  const reason = restrictedReason(user);
  return {
    id: user.id,
    display_name: user.displayName,
    primary_email: user.primaryEmail,
    primary_email_verified: user.primaryEmailVerified,
    profile_image_url: user.profileImageUrl,
    signed_up_at_millis: user.signedUpAt.getTime(),
    client_metadata: user.clientMetadata,
    client_read_only_metadata: user.clientReadOnlyMetadata,
    has_password: user.passwordHash !== null,
    otp_auth_enabled: false,
    passkey_auth_enabled: false,
    auth_with_email: user.passwordHash !== null && user.primaryEmailAuthEnabled,
    requires_totp_mfa: false,
    oauth_providers: user.oauthAccounts.map((account) => ({
      id: account.providerId,
      account_id: account.accountId,
      email: account.email,
    })),
    selected_team_id: user.selectedTeamId,
    selected_team: null,
    is_anonymous: user.isAnonymous,
    is_restricted: reason !== null,
    restricted_reason: reason,
    restricted_by_admin: user.restrictedByAdmin,
    restricted_by_admin_reason: user.restrictedByAdminReason,
  };
}

export function serverUserView(user: UserRow) {
  return {
    ...clientUserView(user),
    primary_email_auth_enabled: user.primaryEmailAuthEnabled,
    last_active_at_millis: user.lastActiveAt.getTime(),
    server_metadata: user.serverMetadata,
    restricted_by_admin_private_details: user.restrictedByAdminPrivateDetails,
    country_code: user.countryCode,
    risk_scores: user.riskScores,
  };
}
