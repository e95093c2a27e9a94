/** What real servers find of the caches that the last one left: all of it after a nap, nothing after an accident. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { mkdir, readFile, rename, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../../../../../test/helpers/eventually.ts';
import { type LocalSubject, makeLocalSubject } from '../../../../../test/helpers/local-subject.ts';
import { Bench, ownerAndDatabase } from '../../../contract/bench.ts';
import type { ComputeObservation } from '../../../interface/driver.ts';
import { adminLogin, withSession } from '../../../server/admin-session.ts';
import { noteRelationCaches } from './relation-caches.ts';

const cacheName = 'pg_internal.init';

let subject: LocalSubject;
const benches: Bench[] = [];
beforeAll(async () => {
  subject = await makeLocalSubject(17);
});
afterAll(async () => {
  for (const bench of benches) await bench.driver.removeProject(bench.ref);
  await subject.close();
});

/** A server in whose database a session has begun, so that there is a cache. */
async function makeServer() {
  const bench = new Bench(subject);
  benches.push(bench);
  const first = await bench.started();
  await bench.driver.configure(bench.ref, ownerAndDatabase);
  await bench.query(first, 'CREATE TABLE t AS SELECT 7 AS n');
  const home = subject.layout.branch(bench.ref.projectId, bench.ref.branchId);
  const data = join(home, 'pgdata');
  /** Inode and content of each cache, by its folder: a cache that was put back is the same file. */
  const caches = () => {
    const databases = readdirSync(join(data, 'base')).filter((name) => /^\d+$/.test(name));
    const found: Record<string, string> = {};
    for (const folder of ['global', ...databases.map((name) => `base/${name}`)]) {
      const names = readdirSync(join(data, folder)).filter((name) => name.startsWith(cacheName));
      for (const name of names) {
        const path = join(data, folder, name);
        found[`${folder}/${name}`] = `${statSync(path).ino} ${readFileSync(path).toString('base64')}`;
      }
    }
    return found;
  };
  const database = async (on: ComputeObservation) => {
    const rows = await bench.query(on, 'SELECT oid::int FROM pg_database WHERE datname = current_database()');
    return `base/${rows?.[0]?.oid}/${cacheName}`;
  };
  let generation = first.generation;
  /** The caches of a server that sleeps, and those that it wakes with. */
  const nap = async (whileAsleep = async () => {}) => {
    await bench.driver.suspend(bench.ref, generation);
    const asleep = caches();
    await whileAsleep();
    const running = await bench.start(++generation);
    const awake = caches();
    return { asleep, awake, running };
  };
  return { bench, first, home, data, caches, nap, ofDatabase: await database(first) };
}

test('after a nap a server has the caches that it fell asleep with, and changes of its catalogs are seen', async () => {
  const { bench, nap, ofDatabase } = await makeServer();
  // A test that stalls while the server starts comes too late to put them back, so there may be another nap.
  await eventually(async () => {
    const { asleep, awake, running } = await nap();
    await bench.query(running, 'SELECT n FROM t');
    expect(awake).toEqual(asleep);
    expect(Object.keys(awake)).toEqual(expect.arrayContaining([ofDatabase, `global/${cacheName}`]));
  });
  await eventually(async () => {
    const { running } = await nap();
    if (running.address === null) throw new Error('it does not run');
    // New files for the catalogs that the caches are about.
    await withSession(running.address, adminLogin(bench.adminSecret), (sql) => sql`VACUUM FULL pg_class`);
    await bench.query(running, 'DROP TABLE IF EXISTS u; CREATE TABLE u AS SELECT 8 AS n');
    const { asleep, awake, running: again } = await nap();
    expect(await bench.query(again, 'SELECT t.n, u.n AS m FROM t, u')).toEqual([{ n: 7, m: 8 }]);
    expect(awake).toEqual(asleep);
  });
});

test('after a crash a server has none of them', async () => {
  const { bench, first, caches, ofDatabase } = await makeServer();
  await bench.driver.suspend(bench.ref, first.generation);
  const second = await bench.start(2);
  // Makes one, if it came too late to put the old one back.
  await bench.query(second, 'SELECT n FROM t');
  const left = caches()[ofDatabase];
  subject.kill(second);
  await eventually(async () => expect(await bench.driver.observe(bench.ref)).toMatchObject({ state: 'absent' }));
  await bench.start(3);
  expect(left).toBeDefined();
  expect(caches()[ofDatabase]).toBeUndefined();
});

test('a cache that is not as it was left is not used, and the others are', async () => {
  const { bench, nap, data, ofDatabase } = await makeServer();
  await eventually(async () => {
    const { asleep, awake, running } = await nap(async () => {
      const content = await readFile(join(data, ofDatabase));
      // As after a power failure, which may leave a file its size and take a block.
      await writeFile(join(data, ofDatabase), content.fill(0, 4_096, 8_192), { flag: 'r+' });
    });
    expect(await bench.query(running, 'SELECT n FROM t')).toEqual([{ n: 7 }]);
    const { [ofDatabase]: damaged, ...others } = asleep;
    expect(damaged).toBeDefined();
    expect(awake).toEqual(others);
  });
});

test.each([
  ['a server of another build has left', { release: 'another' }],
  ['were noted at another shutdown', { checkpointLsn: '0/1' }],
])('caches that %s are not used', async (_, change) => {
  const { bench, first, home, caches } = await makeServer();
  await bench.driver.suspend(bench.ref, first.generation);
  const path = join(home, 'relation-caches.json');
  await writeFile(path, JSON.stringify({ ...JSON.parse(await readFile(path, 'utf8')), ...change }));
  await bench.start(2);
  expect(Object.values(caches())).toEqual([]);
});

test('nothing behind a link in a tenant’s directory is read', async () => {
  const { bench, first, home, data, ofDatabase } = await makeServer();
  await bench.driver.suspend(bench.ref, first.generation);
  const facts = { checkpointLsn: '0/1', release: 'any' };
  const noted = async () => Object.keys(JSON.parse(await readFile(join(home, 'relation-caches.json'), 'utf8')).files);
  const folder = ofDatabase.slice(0, ofDatabase.lastIndexOf('/'));
  noteRelationCaches(home, facts);
  expect(await noted()).toContain(folder);
  await rename(join(data, folder), join(home, 'elsewhere'));
  await symlink(join(home, 'elsewhere'), join(data, folder));
  noteRelationCaches(home, facts);
  expect(await noted()).not.toContain(folder);
  await rename(join(data, 'base'), join(home, 'base'));
  await symlink(join(home, 'base'), join(data, 'base'));
  noteRelationCaches(home, facts);
  expect(await noted()).toEqual(['global']);
  await rename(join(data, 'global'), join(home, 'global'));
  await mkdir(join(data, 'global'));
  await symlink(join(home, 'global', cacheName), join(data, 'global', cacheName));
  noteRelationCaches(home, facts);
  expect(await noted()).toEqual([]);
});
