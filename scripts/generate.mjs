/**
 * Writes every file that is made from the code: docs/errors.md, the README's table of settings, the schema.sql of
 * each product, types of the API for its two clients and of objects of Kubernetes, docs/compatibility.md,
 * docs/reliability.md, docs/performance.md and docs/licenses.md. `.ci/run` demands that nothing changes.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { dumpSchema, tablesOfRooms } from './dump-schema.mjs';
import { isBuildFresh } from './freshness.mjs';
import { loadSource } from './load-source.mjs';
import { contractPackages, publishedOperations } from './published-api.mjs';
import { renderCompatibility } from './render-compatibility.mjs';
import { renderErrors, withSettings } from './render-docs.mjs';
import { renderLicenses } from './render-licenses.mjs';
import { renderPerformance } from './render-performance.mjs';
import { renderReliability } from './render-reliability.mjs';
import { renderCliTypes, renderConsoleTypes, renderKubernetesTypes } from './render-types.mjs';
import { describePackages, installedFolders, readLock } from './third-party.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const source = await loadSource([
  'api/schemas/unversioned',
  'db/client',
  'db/migrate',
  'lib/config',
  'lib/errors',
  'lib/log',
  'lib/setting-docs',
  'machine/system-database',
  'processes/idle-api',
  'processes/migrations',
]);

const { errorKinds } = source['lib/errors'];
const { settingDocs } = source['lib/setting-docs'];
write('docs/errors.md', renderErrors(errorKinds));
write('README.md', withSettings(readFileSync(join(root, 'README.md'), 'utf8'), settingDocs));
await withMigrated(async (sql) => {
  for (const room of Object.keys(tablesOfRooms)) write(`src/${room}/schema.sql`, await dumpSchema(sql, room));
});
const { document, routes } = await describeApi();
const { unversionedSchemas } = source['api/schemas/unversioned'];
write('console/api/generated.ts', renderConsoleTypes(document, unversionedSchemas));
write('src/cli/kit/generated.ts', renderCliTypes(document, unversionedSchemas));
const { kinds } = readJson('src/compute/kubernetes/objects/schemas.json');
write('src/compute/kubernetes/objects/generated.ts', renderKubernetesTypes(kinds));
const { clients } = readJson('docs/compatibility/clients.json');
const { suites } = readJson('docs/compatibility/suites.json');
const contract = { operations: publishedOperations(), packages: contractPackages() };
write('docs/compatibility.md', renderCompatibility({ ...contract, routes, clients, suites }));
const { bugs } = readJson('docs/reliability/bugs.json');
write('docs/reliability.md', renderReliability({ ledgers: readLedgers('docs/reliability', 'bugs.json'), bugs }));
const { reasons } = readJson('docs/performance/reasons.json');
const { page, pictures } = renderPerformance({ ledgers: readLedgers('docs/performance', 'reasons.json'), reasons });
write('docs/performance.md', page);
for (const [name, picture] of pictures) write(`docs/images/${name}`, picture);
// Last, because what was written above is part of the build.
build();
const lock = readLock();
const installed = describePackages(installedFolders(lock), lock);
write('docs/licenses.md', renderLicenses({ bundled: readJson('dist/origin.json').packages, installed }));

function build() {
  if (isBuildFresh()) return;
  const { status } = spawnSync(process.execPath, [join(root, 'scripts/build.mjs')], { stdio: ['ignore', 2, 2] });
  if (status !== 0) process.exit(1);
}

/** On a system database of its own, in a home that is gone afterwards. */
async function withMigrated(use) {
  const { readConfig } = source['lib/config'];
  const { connect } = source['db/client'];
  const { migrate } = source['db/migrate'];
  const { loadAllMigrations } = source['processes/migrations'];
  const { createLogger } = source['lib/log'];
  const { startSystemDatabase } = source['machine/system-database'];
  const home = mkdtempSync(join(tmpdir(), 'catnap-generate-'));
  try {
    const config = readConfig({ CATNAP_HOME: home });
    const system = await startSystemDatabase(config, createLogger({ level: 'error', process: 'generate' }));
    try {
      await migrate(system.connection, await loadAllMigrations());
      const sql = connect(system.connection, 1, 'catnap-generate');
      await use(sql);
      await sql.end();
    } finally {
      await system.stop();
    }
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

/** From the application itself. Only the document is asked for, so what other requests need is left out. */
async function describeApi() {
  const app = await source['processes/idle-api'].buildIdleApi();
  const found = { document: app.swagger(), routes: app.routeTable };
  await app.close();
  return found;
}

function write(path, text) {
  const file = join(root, path);
  if (readIfThere(file) === text) return console.log(`${path} is as it was`);
  writeFileSync(file, text);
  console.log(`${path} was written`);
}

/** What long runs have left in a folder, beside one file that people write. */
function readLedgers(folder, byHand) {
  const names = readdirSync(join(root, folder)).filter((name) => name.endsWith('.json') && name !== byHand);
  return names.sort().map((name) => readJson(`${folder}/${name}`));
}

function readJson(path) {
  return JSON.parse(readFileSync(join(root, path), 'utf8'));
}

function readIfThere(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return null;
  }
}
