/** How handlers reach the project that an integration has at its provider; no transaction is open meanwhile. */

import type { ProviderProject } from '../../auth-client/client.ts';
import type { Caller } from '../../core/access.ts';
import {
  type AuthIntegration,
  type IntegrationAddress,
  providerAccess,
  requireIntegration,
} from '../../core/auth-integration.ts';
import type { Scope } from '../../core/context.ts';
import type { ApiParts } from '../kit/parts.ts';

export interface OpenIntegration {
  readonly integration: AuthIntegration;
  readonly project: ProviderProject;
}

export async function openIntegration(
  { providers }: ApiParts,
  scope: Scope,
  caller: Caller,
  address: IntegrationAddress,
): Promise<OpenIntegration> {
  const integration = await requireIntegration(scope, caller, address);
  const { providerProjectId, adminKey } = providerAccess(scope, integration);
  return { integration, project: providers.clientOf(integration.providerUrl).project(providerProjectId, adminKey) };
}
