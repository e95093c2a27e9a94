/** Which OAuth providers there are: the published ones, at their own addresses or others, and those of the operator. */
import type { JWTPayload } from 'jose';
import type { Clock } from '../../lib/clock.ts';
import type { OauthIssuers } from '../../lib/oauth-issuers.ts';
import { GithubProvider } from './github.ts';
import type { IdentityProvider } from './identity-provider.ts';
import { OpenIdProvider, type OpenIdSettings } from './openid.ts';
import type { Json } from './request.ts';

/** As the published API has them. */
export const publishedProviderIds = ['google', 'github', 'microsoft', 'vercel'] as const;

export interface IdentityProviders {
  /** Undefined for an id that nobody can sign in with here. */
  find(id: string, settings: { readonly microsoftTenantId: string | null }): IdentityProvider | undefined;
}

export const providerIdsOf = (issuers: OauthIssuers): string[] => [
  ...new Set([...publishedProviderIds, ...Object.keys(issuers)]),
];

/** Tenants are chosen by projects; each is remembered with its keys. */
const rememberedMax = 200;
const googleIssuer = 'https://accounts.google.com';
const vercelIssuer = 'https://vercel.com';
const microsoftHost = 'https://login.microsoftonline.com';
/** People with an account of their own, as opposed to one of an organization. */
const standardTenant = 'consumers';
export const tenantPattern = '^[A-Za-z0-9][A-Za-z0-9.-]{0,199}$';

export function createIdentityProviders(issuers: OauthIssuers, clock: Clock): IdentityProviders {
  const remembered = new Map<string, IdentityProvider>();
  const remember = (key: string, make: () => IdentityProvider) => {
    const found = remembered.get(key) ?? make();
    remembered.delete(key);
    remembered.set(key, found);
    for (const oldest of remembered.keys()) {
      if (remembered.size <= rememberedMax) break;
      remembered.delete(oldest);
    }
    return found;
  };
  const openId = (settings: OpenIdSettings) =>
    remember(settings.metadataUrl, () => new OpenIdProvider(settings, clock));
  return {
    find(id, { microsoftTenantId }) {
      const own = Object.hasOwn(issuers, id) ? issuers[id] : undefined;
      if (id === 'github') return new GithubProvider(own);
      if (own !== undefined) return openId(standard(own));
      if (id === 'google') return openId(standard(googleIssuer));
      if (id === 'vercel') return openId(standard(vercelIssuer));
      if (id === 'microsoft') return openId(microsoft(microsoftTenantId ?? standardTenant));
      return undefined;
    },
  };
}

const withoutSlash = (url: string) => url.replace(/\/+$/, '');

function standard(issuer: string): OpenIdSettings {
  return {
    metadataUrl: issuer,
    isIssuer: (found) => withoutSlash(found) === issuer,
    isEmailVerified: ({ email_verified: isVerified }) => isVerified === true || isVerified === 'true',
  };
}

/**
 * Addresses at Microsoft are whatever the owner of a tenant has entered: only the claim that says that the tenant owns
 * the domain makes one good.
 */
function microsoft(tenant: string): OpenIdSettings {
  return {
    metadataUrl: `${microsoftHost}/${encodeURIComponent(tenant)}/v2.0`,
    isIssuer: (found) => /^https:\/\/login\.microsoftonline\.com\/[\w{}.-]+\/v2\.0$/.test(found),
    issuerOf: (pattern: string, { tid }: JWTPayload) => pattern.replace('{tenantid}', String(tid)),
    isEmailVerified: ({ xms_edov: isOwner }: Json) => isOwner === true || isOwner === 1 || isOwner === '1',
  };
}
