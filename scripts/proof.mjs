/**
 * The long runs that look for what the tests have not thought of: `npm run chaos`, `fuzz`, `isolation`, `pieces`,
 * `simulation`.
 *
 *     node scripts/proof.mjs chaos [--seed=7] [--count=1000] [--minutes=30] [--only=PART,PART] [--write]
 *
 * A run can be repeated with its seed, which it prints. With `--write` its figures go into `docs/reliability`; then
 * `npm run generate` makes docs/reliability.md from them.
 */
import { spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const root = fileURLToPath(new URL('..', import.meta.url));
const tools = ['chaos', 'fuzz', 'isolation', 'pieces', 'simulation'];
const usage = `usage: proof.mjs ${tools.join('|')} [--seed=N] [--count=N] [--minutes=N] [--only=PART,PART] [--write]`;

process.exitCode = main();

function main() {
  const wanted = read();
  if (wanted === null) {
    console.error(usage);
    return 2;
  }
  const { tool, ...options } = wanted;
  console.log(`${tool}: seed ${options.seed}`);
  if (run([join(root, 'scripts/build.mjs')]) !== 0) return 1;
  const commit = spawnSync('git', ['rev-parse', '--short', 'HEAD'], { cwd: root, encoding: 'utf8' }).stdout.trim();
  const environment = { ...process.env, CATNAP_PROOF: JSON.stringify({ ...options, commit }) };
  return run([join(root, 'node_modules/vitest/vitest.mjs'), 'run', '--mode=proof', `test/proof/${tool}`], environment);
}

function read() {
  try {
    const text = { type: 'string' };
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: { seed: text, count: text, minutes: text, only: text, write: { type: 'boolean', default: false } },
    });
    const [tool, ...others] = positionals;
    if (!tools.includes(tool) || others.length > 0) return null;
    return {
      tool,
      seed: number(values.seed) ?? randomInt(2 ** 32),
      count: number(values.count),
      minutes: number(values.minutes),
      only: values.only?.split(',') ?? [],
      write: values.write,
    };
  } catch (error) {
    console.error(error.message);
    return null;
  }
}

function number(text) {
  if (text === undefined) return null;
  if (!/^\d+(\.\d+)?$/.test(text)) throw new Error(`${text} is no number`);
  return Number(text);
}

function run(words, env = process.env) {
  return spawnSync(process.execPath, words, { cwd: root, env, stdio: 'inherit' }).status ?? 1;
}
