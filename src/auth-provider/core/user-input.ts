/** The attributes of a user that can be set when it is made or changed: by servers, and by the user's own client. */

import { type Static, Type } from '@fastify/type-provider-typebox';
import type { JsonValue } from '../../db/client.ts';
import { plain, schemaError } from '../http/errors.ts';
import { closed, Email, nullable, Uuid } from '../http/schemas.ts';
import type { UserChange } from '../statements/users.ts';
import { hashPassword } from './passwords.ts';

const optional = Type.Optional;
const Metadata = optional(Type.Unknown());
const DisplayName = optional(nullable(Type.String({ maxLength: 256 })));
const ImageUrl = optional(nullable(Type.String({ maxLength: 200_000 })));
const flag = optional(Type.Boolean());
const Score = Type.Integer({ minimum: 0, maximum: 100 });

const serverFields = {
  display_name: DisplayName,
  profile_image_url: ImageUrl,
  client_metadata: Metadata,
  client_read_only_metadata: Metadata,
  server_metadata: Metadata,
  primary_email: optional(nullable(Email)),
  primary_email_verified: flag,
  primary_email_auth_enabled: flag,
  password: optional(nullable(Type.String({ maxLength: 70 }))),
  password_hash: optional(Type.String({ maxLength: 300 })),
  // Sign-in methods that this provider does not have can be switched off, not on.
  otp_auth_enabled: optional(Type.Literal(false)),
  passkey_auth_enabled: optional(Type.Literal(false)),
  totp_secret_base64: optional(Type.Null()),
  restricted_by_admin: flag,
  restricted_by_admin_reason: optional(nullable(Type.String({ maxLength: 1000 }))),
  restricted_by_admin_private_details: optional(nullable(Type.String({ maxLength: 1000 }))),
  country_code: optional(nullable(Type.String({ pattern: '^[A-Z]{2}$' }))),
  risk_scores: optional(Type.Object({ sign_up: Type.Object({ bot: Score, free_trial_abuse: Score }, closed) }, closed)),
};

export const NewUserBody = Type.Object(
  { ...serverFields, is_anonymous: flag, oauth_providers: optional(Type.Array(Type.Unknown(), { maxItems: 0 })) },
  closed,
);
export const UserChangeBody = Type.Object(
  { ...serverFields, is_anonymous: optional(Type.Literal(false)), selected_team_id: optional(nullable(Uuid)) },
  closed,
);
export const OwnChangeBody = Type.Object(
  {
    display_name: DisplayName,
    profile_image_url: ImageUrl,
    client_metadata: Metadata,
    primary_email: optional(nullable(Email)),
    selected_team_id: optional(nullable(Uuid)),
    otp_auth_enabled: optional(Type.Literal(false)),
    passkey_auth_enabled: optional(Type.Literal(false)),
    totp_secret_base64: optional(Type.Null()),
  },
  closed,
);

type ServerInput = Static<typeof NewUserBody> & Pick<Static<typeof UserChangeBody>, 'selected_team_id'>;

/** Hashes the password here, before any row is locked. */
export async function changeFromServer(body: Partial<ServerInput>): Promise<UserChange> {
  if (body.password !== undefined && body.password_hash !== undefined) {
    throw plain(400, 'Give password or password_hash, not both.');
  }
  if (body.password_hash !== undefined)
    throw plain(400, 'password_hash: hashes cannot be imported into this provider.');
  const restriction = [body.restricted_by_admin_reason, body.restricted_by_admin_private_details];
  if (body.restricted_by_admin !== true && restriction.some((text) => typeof text === 'string')) {
    throw plain(400, 'restricted_by_admin_reason and restricted_by_admin_private_details need restricted_by_admin.');
  }
  const lifted = body.restricted_by_admin === false;
  return given({
    ...sharedChange(body),
    clientReadOnlyMetadata: asJson(body.client_read_only_metadata, 'client_read_only_metadata'),
    serverMetadata: asJson(body.server_metadata, 'server_metadata'),
    primaryEmailVerified: body.primary_email_verified,
    primaryEmailAuthEnabled: body.primary_email_auth_enabled,
    passwordHash: typeof body.password === 'string' ? await hashPassword(body.password) : body.password,
    isAnonymous: body.is_anonymous,
    restrictedByAdmin: body.restricted_by_admin,
    restrictedByAdminReason: lifted ? null : body.restricted_by_admin_reason,
    restrictedByAdminPrivateDetails: lifted ? null : body.restricted_by_admin_private_details,
    countryCode: body.country_code,
    riskScores: body.risk_scores,
  });
}

export function changeFromOwner(body: Static<typeof OwnChangeBody>): UserChange {
  const image = body.profile_image_url;
  // A picture that is fetched from elsewhere would reveal to its host who views the user.
  if (typeof image === 'string' && !/^data:image\/(png|jpeg|gif|webp|svg\+xml);base64,[A-Za-z0-9+/=]*$/.test(image)) {
    throw schemaError('body.profile_image_url must be a base64 data image');
  }
  return given(sharedChange(body));
}

function sharedChange(body: Static<typeof OwnChangeBody>) {
  requireImage(body.profile_image_url);
  return {
    displayName: body.display_name === '' ? null : body.display_name,
    profileImageUrl: body.profile_image_url,
    clientMetadata: asJson(body.client_metadata, 'client_metadata'),
    selectedTeamId: body.selected_team_id,
    primaryEmail: typeof body.primary_email === 'string' ? normalEmail(body.primary_email) : body.primary_email,
  };
}

/** Dots and plus signs are kept: which addresses are the same mailbox is up to the mail host. */
export const normalEmail = (email: string) => email.trim().toLowerCase();

function requireImage(url: string | null | undefined): void {
  if (typeof url !== 'string') return;
  if (!URL.canParse(url) || !['http:', 'https:', 'data:'].includes(new URL(url).protocol)) {
    throw schemaError('body.profile_image_url must be an http, https or data URL');
  }
}

const metadataCharactersMax = 100_000;

function asJson(value: unknown, field: string): JsonValue | undefined {
  if (value !== undefined && JSON.stringify(value).length > metadataCharactersMax) {
    throw schemaError(`body.${field} must not be larger than ${metadataCharactersMax} characters`);
  }
  return value as JsonValue | undefined;
}

function given(change: { [Key in keyof UserChange]: UserChange[Key] | undefined }): UserChange {
  return Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined)) as UserChange;
}
