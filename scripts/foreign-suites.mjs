/**
 * Runs the test suite of somebody else's driver against a plain server, and against the direct and the pooled host of a
 * temporary Catnap, and prints which tests differ:
 *
 *     node scripts/foreign-suites.mjs node-postgres /path/of/its/checkout [--write] [--version=1.2.3]
 *
 * With `--write` the result goes into `docs/compatibility/suites.json`, where the reasons for differences that are
 * known already are kept. `--version` is for a source that does not say its own. CATNAP_PROXY_RUNTIME chooses the
 * runtime of the proxy. The suites are no part of this repository: check them out, with what they need installed.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startServers } from './foreign/servers.mjs';
import { suites, versionOf } from './foreign/suites.mjs';

const dataFile = fileURLToPath(new URL('../docs/compatibility/suites.json', import.meta.url));
const [name, path, ...flags] = process.argv.slice(2);
const suite = suites[name];
if (suite === undefined || path === undefined || !existsSync(path)) {
  process.stderr.write(`usage: foreign-suites.mjs ${Object.keys(suites).join('|')} PATH [--write]\n`);
  process.exit(2);
}
const source = resolve(path);
const version = flags.find((flag) => flag.startsWith('--version='))?.slice('--version='.length) ?? versionOf(source);
const { servers, close } = await startServers();
const outcomes = {};
try {
  for (const [kind, server] of Object.entries(servers)) outcomes[kind] = await suite.runSuite(source, server);
} finally {
  await close();
}
const tests = [...outcomes.control.keys()];
/** Where outcomes are texts, the control's own text is the right one. */
const isText = tests.some((test) => !['passed', 'failed'].includes(outcomes.control.get(test)));
const isGood = (kind, test) => outcomes[kind].get(test) === (isText ? outcomes.control.get(test) : 'passed');
const count = (kind) => tests.filter((test) => isGood(kind, test)).length;
const differs = (kind) => tests.filter((test) => isGood('control', test) !== isGood(kind, test));

const summary = { tests: tests.length, control: count('control'), direct: count('direct'), pooled: count('pooled') };
process.stdout.write(`${name} ${version}: ${JSON.stringify(summary)}\n`);
for (const test of tests.filter((each) => !isGood('control', each))) process.stdout.write(`control fails: ${test}\n`);
for (const kind of ['direct', 'pooled']) {
  for (const test of differs(kind)) process.stdout.write(`${kind} differs: ${test}\n`);
}
if (flags.includes('--write')) writeResult();

function writeResult() {
  const data = existsSync(dataFile) ? JSON.parse(readFileSync(dataFile, 'utf8')) : { suites: [] };
  const before = data.suites.find((each) => each.name === name);
  const reasons = new Map((before?.differences ?? []).map(({ what, why }) => [what, why]));
  const differences = ['direct', 'pooled'].flatMap((kind) =>
    differs(kind).map((test) => ({
      what: `${kind}: ${test}`,
      why: reasons.get(`${kind}: ${test}`) ?? 'not known yet',
    })),
  );
  const date = new Date().toISOString().slice(0, 10);
  const result = { name, version, ...summary, differences, date };
  const others = data.suites.filter((each) => each.name !== name);
  mkdirSync(dirname(dataFile), { recursive: true });
  writeFileSync(dataFile, `${JSON.stringify({ suites: [...others, result] }, null, 2)}\n`);
}
