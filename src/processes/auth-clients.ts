/** The auth providers of this installation, as its processes reach them. */

import { createProviders, type Providers } from '../auth-client/providers.ts';
import { authProviderPrefix } from '../auth-provider/core/parts.ts';
import { localUrl } from '../lib/config.ts';
import { integrationClientId } from './auth-provider.ts';
import type { ChildInit } from './channel/messages.ts';

export function makeProviders({ config, stackSecret }: Pick<ChildInit, 'config' | 'stackSecret'>): Providers {
  const external = config.stack && {
    baseUrl: config.stack.url,
    clientId: config.stack.clientId,
    clientSecret: config.stack.clientSecret,
  };
  return createProviders({
    embedded: {
      baseUrl: `${config.internalUrl ?? localUrl(config)}${authProviderPrefix}`,
      clientId: integrationClientId,
      clientSecret: stackSecret,
    },
    embeddedPublicUrl: `${config.publicUrl}${authProviderPrefix}`,
    external: external ?? null,
  });
}
