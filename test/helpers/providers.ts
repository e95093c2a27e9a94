/** The providers of a test: a stand-in elsewhere, or none that anybody could reach. */
import { createProviders, type Providers } from '../../src/auth-client/providers.ts';
import type { StandIn } from './stand-in-provider.ts';

const nobody = { baseUrl: 'http://127.0.0.1:9', clientId: 'nobody', clientSecret: 'nothing' };

export function testProviders(standIn?: StandIn): Providers {
  const external = standIn && { baseUrl: standIn.url, clientId: standIn.clientId, clientSecret: standIn.clientSecret };
  return createProviders({
    embedded: nobody,
    embeddedPublicUrl: 'http://localhost:7070/stack',
    external: external ?? null,
  });
}
