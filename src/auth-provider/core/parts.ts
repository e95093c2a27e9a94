/** What the provider is built from. It gets nothing from anywhere else. */

import type { Database } from '../../db/client.ts';
import type { Clock } from '../../lib/clock.ts';
import type { OauthIssuers } from '../../lib/oauth-issuers.ts';
import type { OutboundPolicy } from '../../lib/outbound.ts';
import type { SecretBox } from '../../lib/secrets.ts';

/** Where it is served. Here and not beside the routes, which only the API process is to load. */
export const authProviderPrefix = '/stack';

export interface AuthProviderParts {
  readonly database: Database;
  readonly box: SecretBox;
  readonly clock: Clock;
  /** Where people reach the provider: the public URL of Catnap, and `/stack`. Tokens name it as their issuer. */
  readonly baseUrl: string;
  /** The secrets of integration clients, by client id. */
  readonly integrationSecrets: Readonly<Record<string, string>>;
  /** From the key file; derives tokens that are not stored. */
  readonly derivationKey: Uint8Array;
  /** Whether unauthenticated clients are limited by their address; accounts always are. */
  readonly limitsAddresses: boolean;
  /** Where the operator has OAuth providers look for people, by provider id. */
  readonly oauthIssuers: OauthIssuers;
  /** Where webhooks may be sent. */
  readonly webhookPolicy: OutboundPolicy;
  /** How long an access token is valid; ten minutes by default. */
  readonly accessTokenSeconds?: number;
}
