/** Two Catnaps that start at once on one new system database. */
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { DatabaseElsewhere } from '../../../test/proof/chaos/database-elsewhere.ts';
import { readConfig } from '../../lib/config.ts';
import { createLogger } from '../../lib/log.ts';
import { startSystem } from './system.ts';

let database: DatabaseElsewhere;
const homes: string[] = [];
beforeAll(async () => {
  database = await DatabaseElsewhere.open();
});
afterAll(async () => {
  await database.close();
  for (const home of homes) await rm(home, { recursive: true, force: true });
});

const log = createLogger({ level: 'silent', process: 'test' });
const secretKey = randomBytes(32).toString('base64');

async function start(more: Record<string, string> = {}) {
  const home = await mkdtemp(join(tmpdir(), 'catnap-system-'));
  homes.push(home);
  const config = readConfig({ CATNAP_HOME: home, CATNAP_DATABASE_URL: database.url, ...more }, { isRoot: false });
  return startSystem(config, log, () => {});
}

test('make one account, with one key, and the same secrets', async () => {
  const given = { CATNAP_SECRET_KEY: secretKey };
  const both = await Promise.all([start(given), start(given)]);
  expect(both.filter(({ newApiKey }) => newApiKey !== null)).toHaveLength(1);
  expect(new Set(both.map(({ stackSecret }) => stackSecret)).size).toBe(1);
  await Promise.all(both.map((system) => system.stop()));
});

test('one that has another key is refused before it seals anything', async () => {
  const refused = start({ CATNAP_SECRET_KEY: randomBytes(32).toString('base64') });
  await expect(refused).rejects.toThrow('the system database belongs to a Catnap with another secret.key');
  const again = await start({ CATNAP_SECRET_KEY: secretKey });
  await again.stop();
});
