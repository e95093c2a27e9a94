/** What Catnap asks of an OAuth provider: where to send somebody, and who it was that came back. */
import type { Identity } from '../statements/oauth-visits.ts';

export interface Visit {
  readonly clientId: string;
  readonly redirectUri: string;
  readonly state: string;
  readonly nonce: string;
  readonly codeChallenge: string;
}

export interface Return {
  readonly clientId: string;
  readonly clientSecret: string;
  readonly redirectUri: string;
  readonly code: string;
  readonly nonce: string;
  readonly codeVerifier: string;
  /** `iss` of the answer, which some providers send. */
  readonly issuer: string | undefined;
}

export interface IdentityProvider {
  authorizationUrl(visit: Visit): Promise<string>;
  identify(answer: Return): Promise<Identity>;
}
