/** An identity out of what a provider says, which may be of any type and length. */
import { emailPattern } from '../http/schemas.ts';
import type { Identity } from '../statements/oauth-visits.ts';
import { ThirdPartyFailure } from './failure.ts';

const email = new RegExp(emailPattern);

export interface Claims {
  readonly accountId: unknown;
  readonly email: unknown;
  readonly isEmailVerified: boolean;
  readonly displayName: unknown;
  readonly pictureUrl: unknown;
}

export function identityOf(issuer: string, claims: Claims): Identity {
  const accountId = text(claims.accountId, 255);
  if (accountId === null) throw new ThirdPartyFailure('rejected', 'the account has no usable id');
  const address = text(claims.email, 256)?.trim().toLowerCase() ?? null;
  const isAddress = address !== null && email.test(address);
  return {
    issuer,
    accountId,
    email: isAddress ? address : null,
    isEmailVerified: isAddress && claims.isEmailVerified,
    displayName: text(claims.displayName, 256),
    pictureUrl: pictureOf(claims.pictureUrl),
  };
}

function text(value: unknown, lengthMax: number): string | null {
  return typeof value === 'string' && value !== '' && value.length <= lengthMax && !value.includes('\0') ? value : null;
}

function pictureOf(value: unknown): string | null {
  const url = text(value, 2_000);
  return url !== null && URL.canParse(url) && new URL(url).protocol === 'https:' ? url : null;
}
