/** Everybody who may call, and must not get in, or must get no further than to what is theirs. */
import { hashToken } from '../../../src/lib/secrets.ts';
import type { Holdings, Stage } from './stage.ts';

export interface SweepCaller {
  readonly name: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Whom the API must not know at all; a stranger with an account; a key of another project of the organization. */
  readonly standing: 'nobody' | 'stranger' | 'sibling';
  readonly own: Holdings;
  /** Its key may do only some things, whatever they are done to. */
  readonly isLimited?: boolean;
  /** Its key may not follow changes, not even of what is its own. */
  readonly hearsNothing?: boolean;
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
const fromConsole = { 'x-catnap-console': '1', 'sec-fetch-site': 'same-origin' };

export function callersOf(stage: Stage): SweepCaller[] {
  const { tokens } = stage;
  const nobody = (name: string, headers: Record<string, string>): SweepCaller => ({
    name,
    headers,
    standing: 'nobody',
    own: stage.attacker,
  });
  const stranger = (name: string, headers: Record<string, string>): SweepCaller => ({
    ...nobody(name, headers),
    standing: 'stranger',
  });
  const secret = /=(.*)/.exec(tokens.victimSession)?.[1] ?? '';
  return [
    stranger('personal key of somebody else', bearer(tokens.attacker)),
    stranger('organization key of somebody else', bearer(tokens.attackerOrganization)),
    stranger('project key of somebody else', bearer(tokens.attackerProject)),
    stranger('console sign-in of somebody else', { cookie: tokens.attackerSession, ...fromConsole }),
    {
      name: 'project key of another project there',
      headers: bearer(tokens.siblingProject),
      standing: 'sibling',
      own: stage.sibling,
    },
    ...Object.entries(tokens.attackerLimited).map(([scope, token]) => ({
      ...stranger(`${scope} key of somebody else`, bearer(token)),
      isLimited: true,
      hearsNothing: scope === 'sql',
    })),
    nobody('no key', {}),
    nobody('an expired key of the victim', bearer(tokens.victimExpired)),
    nobody('a key of nobody', bearer('napi_0123456789abcdefghijklmnopqrstuvwxyz')),
    nobody('a pattern for a key', bearer('%')),
    nobody('a revoked key of the victim', bearer(tokens.victimRevoked)),
    nobody('the hash of a key', bearer(Buffer.from(hashToken(tokens.victim)).toString('hex'))),
    nobody('the key as a basic password', { authorization: `Basic ${btoa(`:${tokens.victim}`)}` }),
    nobody('the key in a cookie', { cookie: `keycloak_token=${tokens.victim}` }),
    nobody('the key in another header', { 'x-api-key': tokens.victim }),
    nobody('the password of a role', bearer(tokens.victimRolePassword)),
    nobody('a key of the auth provider', bearer(tokens.authAdminKey)),
    nobody('a sign-in as a key', bearer(secret)),
    nobody('a sign-in whose key is revoked', { cookie: tokens.attackerEndedSession, ...fromConsole }),
    nobody('the victim’s sign-in, sent by a form', { cookie: tokens.victimSession }),
    nobody('the victim’s sign-in, sent by another site', {
      cookie: tokens.victimSession,
      'x-catnap-console': '1',
      'sec-fetch-site': 'cross-site',
    }),
    nobody('the victim’s sign-in, sent by another origin', {
      cookie: tokens.victimSession,
      'x-catnap-console': '1',
      origin: 'https://evil.example',
    }),
  ];
}
