/** The auth providers of this installation, as its processes reach them. */

import { createProviders, type Providers } from '../auth-client/providers.ts';
import { stackPrefix } from '../auth-provider/plugin.ts';
import type { Config } from '../lib/config.ts';
import { integrationClientId } from './auth-provider.ts';
import type { ChildInit } from './channel/messages.ts';

export function ownProviders({ config, stackSecret }: Pick<ChildInit, 'config' | 'stackSecret'>): Providers {
  const external = config.stack && {
    baseUrl: config.stack.url,
    clientId: config.stack.clientId,
    clientSecret: config.stack.clientSecret,
  };
  return createProviders({
    embedded: {
      baseUrl: `${localUrl(config)}${stackPrefix}`,
      clientId: integrationClientId,
      clientSecret: stackSecret,
    },
    embeddedPublicUrl: `${config.publicUrl}${stackPrefix}`,
    external: external ?? null,
  });
}

/** Past any reverse proxy: the HTTP port of this machine, whose address need not be one that can be dialled. */
function localUrl({ bind, httpPort }: Config): string {
  const host = bind === '0.0.0.0' ? '127.0.0.1' : bind === '::' ? '::1' : bind;
  return `http://${host.includes(':') ? `[${host}]` : host}:${httpPort}`;
}
