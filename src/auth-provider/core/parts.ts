/** What the provider is handed. It gets nothing from anywhere else. */

import type { Database } from '../../db/client.ts';
import type { Clock } from '../../lib/clock.ts';
import type { SecretBox } from '../../lib/secrets.ts';

export interface AuthProviderParts {
  readonly database: Database;
  readonly box: SecretBox;
  readonly clock: Clock;
  /** Where people reach the provider: the public URL of Catnap, and `/stack`. Tokens name it as their issuer. */
  readonly baseUrl: string;
  /** What integration clients prove themselves with, by client id. */
  readonly integrationSecrets: Readonly<Record<string, string>>;
  /** From the key file; names tokens that are derived instead of stored. */
  readonly derivationKey: Uint8Array;
  /** Whether unauthenticated clients are limited by their address; accounts always are. */
  readonly limitsAddresses: boolean;
  /** How long an access token is good for; ten minutes unless said. */
  readonly accessTokenSeconds?: number;
}
