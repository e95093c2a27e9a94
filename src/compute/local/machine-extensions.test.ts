/**
 * Extensions of the machine in a real server, as their owner meets them. No package is needed: the library of each is
 * a copy of one that comes with the embedded Postgres.
 */
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type LocalSubject, makeLocalSubject } from '../../../test/helpers/local-subject.ts';
import { newBranchId, newEndpointId } from '../../lib/ids.ts';
import { Bench, ownerAndDatabase } from '../contract/bench.ts';
import { LocalDriver } from './driver/local-driver.ts';
import { locateEmbedded } from './host/postgres/builds.ts';
import { extensionFoldersOf, foldersInTree } from './host/postgres/machine-extensions.ts';

let root: string;
let subject: LocalSubject;
let bench: Bench;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'cn-ext-'));
  await addExtension('vector');
  await addExtension('hypopg', (library) => library.replace('libc.so.6', 'libq.so.6'));
  await addExtension('pg_cron');
  subject = await makeLocalSubject(17, undefined, { roots: { 17: [root] }, allowed: ['pg_cron'] });
  bench = new Bench(subject);
});
afterAll(async () => {
  await subject.driver.removeProject(bench.ref);
  await subject.close();
  await rm(root, { recursive: true, force: true });
});

async function addExtension(name: string, change: (library: string) => string = (library) => library): Promise<void> {
  const [folders] = extensionFoldersOf(17, { roots: { 17: [root] } });
  if (folders === undefined) throw new Error('there are no folders');
  await mkdir(folders.scripts, { recursive: true });
  await mkdir(folders.libraries, { recursive: true });
  const control = `default_version = '1.0'\nmodule_pathname = '$libdir/${name}'\n`;
  await writeFile(join(folders.scripts, `${name}.control`), control);
  const script = `CREATE FUNCTION ${name}_touch() RETURNS trigger AS 'MODULE_PATHNAME', 'moddatetime' LANGUAGE C;`;
  await writeFile(join(folders.scripts, `${name}--1.0.sql`), script);
  const real = await readFile(join(foldersInTree(locateEmbedded(17)).libraries, 'moddatetime.so'), 'latin1');
  await writeFile(join(folders.libraries, `${name}.so`), change(real), 'latin1');
}

const touched = `INSERT INTO t VALUES (1, '2000-01-01'); UPDATE t SET n = 2`;
const preloaded = { settings: { shared_preload_libraries: 'pg_stat_statements,pg_cron' } };

test('an owner creates what is offered, and is told why something else is not', async () => {
  await bench.createBranch();
  const running = await bench.start(1, preloaded);
  await bench.driver.configure(bench.ref, ownerAndDatabase);
  await bench.query(running, 'CREATE EXTENSION vector; CREATE TABLE t (n int, changed timestamp)');
  await bench.query(
    running,
    `CREATE TRIGGER touch BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION vector_touch('changed')`,
  );
  await bench.query(running, touched);
  expect(await bench.query(running, `SELECT changed > '2001-01-01' AS is_new FROM t`)).toEqual([{ is_new: true }]);
  await expect(bench.query(running, 'CREATE EXTENSION hypopg')).rejects.toThrow(
    'extension "hypopg" is not available: its library needs libq.so.6, which this machine does not have',
  );
});

test('a branch has what its source has', async () => {
  const ref = { branchId: newBranchId(), endpointId: newEndpointId() };
  await bench.cloneBranch(ref.branchId);
  const running = await bench.start(1, ref);
  await bench.query(running, touched);
  expect(await bench.query(running, `SELECT extname FROM pg_extension WHERE extname = 'vector'`)).toHaveLength(1);
  await bench.driver.suspend({ ...bench.ref, ...ref }, 1);
});

test('one that has gone from the machine is missed: at a start that preloads it, and where it is used', async () => {
  await bench.driver.suspend(bench.ref, 1);
  await rm(root, { recursive: true });
  const later = new Bench({ ...subject, driver: new LocalDriver(subject.openHost()) });
  const again = { ...bench.ref, adminSecret: bench.adminSecret };
  await expect(later.driver.start(later.spec(2, { ...again, ...preloaded }))).rejects.toThrow(
    /the library pg_cron for Postgres 17 is not on this machine: .* settings.preload_libraries/,
  );
  const running = await later.start(3, again);
  await expect(later.query(running, touched)).rejects.toThrow(/could not access file "\$libdir\/vector"/);
  await expect(later.query(running, 'CREATE EXTENSION pg_cron')).rejects.toThrow(/has gone from this machine/);
  const { extensions } = await later.driver.listExtensions(17);
  expect(extensions.find(({ name }) => name === 'vector')).toMatchObject({ isOffered: false });
});
