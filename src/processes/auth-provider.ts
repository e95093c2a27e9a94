/** What the embedded auth provider is built from, in each process that needs it. */
import { createHmac } from 'node:crypto';
import { type AuthProviderParts, authProviderPrefix } from '../auth-provider/core/parts.ts';
import type { Core } from '../core/context.ts';
import { outboundPolicy } from '../lib/outbound.ts';
import type { ChildInit } from './channel/messages.ts';

/** The client id under which Catnap itself calls the provider. */
export const integrationClientId = 'catnap';

export function authProviderParts(core: Core, init: Pick<ChildInit, 'secretKey' | 'stackSecret'>): AuthProviderParts {
  const { database, box, clock, config } = core;
  return {
    database,
    box,
    clock,
    baseUrl: `${config.publicUrl}${authProviderPrefix}`,
    integrationSecrets: { [integrationClientId]: init.stackSecret },
    derivationKey: createHmac('sha256', init.secretKey).update('tokens of the embedded auth provider').digest(),
    limitsAddresses: config.rateLimitPerMinute !== undefined,
    oauthIssuers: config.oauthIssuers,
    webhookPolicy: { ...outboundPolicy(config), allowPlain: true },
  };
}
