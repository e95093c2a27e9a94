/**
 * In place of the suite's harness: runs every test in its order, whatever the others did, and prints each outcome. A
 * test that fails leaves its table behind, under the one name that they all use, so the table is dropped then.
 */
import { spawnSync } from 'node:child_process';

const dropTable = "set lock_timeout = '2s'; drop table if exists test cascade";
const triesMax = 3;
const queue = [];
const seen = new Map();

export const t = (name, options, work) => {
  const hasOptions = typeof options === 'object';
  // Some names occur twice.
  const count = (seen.get(name) ?? 0) + 1;
  seen.set(name, count);
  queue.push({
    name: count === 1 ? name : `${name} (${count})`,
    seconds: (hasOptions && options.timeout) || t.timeout,
    work: hasOptions ? work : options,
  });
};
t.timeout = 5;
export const nt = () => {};
export const ot = t;

setImmediate(async () => {
  for (const test of queue) {
    let fault = await attempt(test);
    for (let tries = 1; tries < triesMax && fault !== null; tries++) fault = await attempt(test);
    const reason = String(fault).replaceAll('\n', ' ');
    process.stdout.write(fault === null ? `passed\t${test.name}\n` : `failed\t${test.name}\t${reason}\n`);
  }
  process.exit(0);
});

/** Null when the test has passed. */
async function attempt({ seconds, work }) {
  let timer;
  const late = new Promise((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error('timed out')), seconds * 1000);
  });
  const result = Promise.resolve()
    .then(work)
    .then((pair) => Promise.all(pair));
  const fault = await Promise.race([result, late]).then(
    ([expected, got]) => (expected === got ? null : `${String(expected)} != ${String(got)}`),
    (error) => (error instanceof Error ? error.message : String(error)),
  );
  clearTimeout(timer);
  if (fault !== null) {
    const args = ['-X', '-U', 'postgres_js_test', '-d', 'postgres_js_test', '-c', dropTable];
    spawnSync('psql', args, { stdio: 'ignore' });
  }
  return fault;
}

process.on('unhandledRejection', (error) => process.stdout.write(`unhandled ${error}\n`));
process.on('uncaughtException', (error) => process.stdout.write(`uncaught ${error}\n`));
