/** A whole domain over a fresh database, with two people in two organizations: the caller and a stranger. */
import { randomBytes } from 'node:crypto';
import type { Caller } from '../../src/core/access.ts';
import { ensureFirstAccount } from '../../src/core/account.ts';
import { authenticate } from '../../src/core/api-key.ts';
import { type Core, commandScope, readScope } from '../../src/core/context.ts';
import { insertMember, insertOrganization, insertUser } from '../../src/db/accounts.ts';
import { insertApiKey } from '../../src/db/api-keys.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { type Config, readConfig } from '../../src/lib/config.ts';
import { newApiKeyToken, newOrganizationId, newUserId } from '../../src/lib/ids.ts';
import { createSecretBox, hashToken } from '../../src/lib/secrets.ts';
import { makeDatabase, type TestDatabase } from './database.ts';

export interface TestCore {
  readonly core: Core;
  readonly caller: Caller;
  /** Personal key of `caller`. */
  readonly token: string;
  /** Personal key of somebody in another organization. */
  readonly strangerToken: string;
  close(): Promise<void>;
}

export async function makeCore(overrides: Partial<Config> = {}, poolSize = 10): Promise<TestCore> {
  return makeCoreOn(await makeDatabase(poolSize), overrides);
}

export async function makeCoreOn({ database, drop }: TestDatabase, overrides: Partial<Config> = {}): Promise<TestCore> {
  const config = { ...readConfig({}, { isRoot: false }), ...overrides };
  const core: Core = { database, box: createSecretBox(randomBytes(32)), clock: systemClock, config };
  const first = await database.transaction((tx) => ensureFirstAccount(commandScope(core, tx)));
  const token = first?.token ?? '';
  const caller = await authenticate(readScope(core), token);
  if (caller === undefined) throw new Error('the first key does not authenticate');
  return { core, caller, token, strangerToken: await makeStranger(core), close: drop };
}

async function makeStranger(core: Core): Promise<string> {
  const { sql } = core.database;
  const user = await insertUser(sql, {
    id: newUserId(),
    email: 'stranger@elsewhere.test',
    login: 'stranger',
    name: 'Stranger',
  });
  const organizationId = newOrganizationId();
  await insertOrganization(sql, { id: organizationId, name: 'Elsewhere', handle: organizationId, plan: 'scale' });
  await insertMember(sql, organizationId, user.id);
  const token = newApiKeyToken();
  await insertApiKey(sql, {
    tokenHash: hashToken(token),
    kind: 'personal',
    userId: user.id,
    organizationId: null,
    projectId: null,
    name: 'stranger',
    createdBy: user.id,
  });
  return token;
}
