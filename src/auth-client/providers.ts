/**
 * The providers of this installation: the embedded one, and an external deployment when one is configured. New
 * integrations go to the latter if there is one; each integration stays with the provider that it was made at.
 */
import { type ProviderAccess, ProviderClient } from './client.ts';
import { ProviderError } from './errors.ts';

export interface Providers {
  /** Where new integrations are made: null for the embedded provider, otherwise the URL of a deployment. */
  readonly current: string | null;
  /** The client for an integration's provider. */
  clientOf(providerUrl: string | null): ProviderClient;
  /** The address that applications are given. */
  publicUrlOf(providerUrl: string | null): string;
}

export interface ProvidersOptions {
  /** As this process reaches it. */
  readonly embedded: ProviderAccess;
  /** As applications reach it. */
  readonly embeddedPublicUrl: string;
  readonly external: ProviderAccess | null;
}

export function createProviders({ embedded, embeddedPublicUrl, external }: ProvidersOptions): Providers {
  const embeddedClient = new ProviderClient(embedded);
  const externalClient = external && new ProviderClient(external);
  return {
    current: external?.baseUrl ?? null,
    clientOf: (providerUrl) => {
      if (providerUrl === null) return embeddedClient;
      if (externalClient !== null && external?.baseUrl === providerUrl) return externalClient;
      throw new ProviderError(
        'credentials',
        `the integration belongs to the auth provider at ${providerUrl}, which this installation is not set up for`,
      );
    },
    publicUrlOf: (providerUrl) => providerUrl ?? embeddedPublicUrl,
  };
}

export const jwksUrl = (baseUrl: string, providerProjectId: string) =>
  `${baseUrl}/api/v1/projects/${providerProjectId}/.well-known/jwks.json`;
