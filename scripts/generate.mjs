/**
 * Writes every file that is made from the code: docs/errors.md, the README's table of settings, the schema.sql of
 * each product, the API's types for its two clients, and docs/compatibility.md. It works on dist/, because Node 20 does
 * not run TypeScript, and builds it first.
 * `.ci/run` demands that nothing changes.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Registry } from 'prom-client';
import { dumpSchema, tablesOfRooms } from './dump-schema.mjs';
import { contractPackages, publishedOperations } from './published-api.mjs';
import { renderCompatibility } from './render-compatibility.mjs';
import { renderErrors, withSettings } from './render-docs.mjs';
import { renderCliTypes, renderConsoleTypes } from './render-types.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const built = (path) => import(`../dist/${path}`);

const build = spawnSync(process.execPath, [join(root, 'scripts/build.mjs')], { stdio: 'inherit' });
if (build.status !== 0) process.exit(1);

const { errorKinds } = await built('lib/errors.js');
const { settingDocs } = await built('lib/setting-docs.js');
write('docs/errors.md', renderErrors(errorKinds));
write('README.md', withSettings(readFileSync(join(root, 'README.md'), 'utf8'), settingDocs));
await withMigrated(async (sql) => {
  for (const room of Object.keys(tablesOfRooms)) write(`src/${room}/schema.sql`, await dumpSchema(sql, room));
});
const { document, routes } = await describeApi();
const { unversionedSchemas } = await built('api/schemas/unversioned.js');
write('console/api/generated.ts', renderConsoleTypes(document, unversionedSchemas));
write('src/cli/kit/generated.ts', renderCliTypes(document, unversionedSchemas));
const { suites } = JSON.parse(readFileSync(join(root, 'docs/compatibility/suites.json'), 'utf8'));
const contract = { operations: publishedOperations(), packages: contractPackages() };
write('docs/compatibility.md', renderCompatibility({ ...contract, routes, suites }));

/** On a system database of its own, in a home that is gone afterwards. */
async function withMigrated(use) {
  const { readConfig } = await built('lib/config.js');
  const { connect } = await built('db/client.js');
  const { migrate } = await built('db/migrate.js');
  const { loadAllMigrations } = await built('processes/migrations.js');
  const { createLogger } = await built('lib/log.js');
  const { startSystemDatabase } = await built('machine/system-database.js');
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
  const { buildApp } = await built('api/app.js');
  const { noConsole } = await built('api/kit/console-files.js');
  const { openDatabase } = await built('db/client.js');
  const { systemClock: clock } = await built('lib/clock.js');
  const { readConfig } = await built('lib/config.js');
  const { createLogger } = await built('lib/log.js');
  const { authProviderParts } = await built('processes/auth-provider.js');
  const config = readConfig({});
  // Connects with the first statement, and there is none.
  const core = { database: openDatabase({}, { poolSize: 1, name: 'catnap-generate' }), clock, config };
  const app = await buildApp({
    core,
    config,
    clock,
    log: createLogger({ level: 'error', process: 'generate' }),
    metrics: new Registry(),
    version: '',
    consoleFiles: noConsole,
    proxySockets: [],
    authProvider: authProviderParts(core, { secretKey: '', stackSecret: '' }),
  });
  await app.ready();
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

function readIfThere(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return null;
  }
}
