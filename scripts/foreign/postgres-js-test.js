/**
 * In place of the suite's harness: runs every test in its order, whatever the others did, and prints each outcome. A test
 * that fails leaves its table behind, under the one name that they all use, so the table is dropped then.
 */
import { spawnSync } from 'node:child_process';

const dropTable = "set lock_timeout = '2s'; drop table if exists test cascade";
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
  for (const { name, seconds, work } of queue) {
    let timer;
    const late = new Promise((_resolve, reject) => {
      timer = setTimeout(() => reject(new Error('timed out')), seconds * 1000);
    });
    const outcome = await Promise.race([
      Promise.resolve()
        .then(work)
        .then((pair) => Promise.all(pair)),
      late,
    ]).then(
      ([expected, got]) => (expected === got ? 'passed' : `failed\t${name}\t${String(expected)} != ${String(got)}`),
      (error) => `failed\t${name}\t${error instanceof Error ? error.message : String(error)}`,
    );
    clearTimeout(timer);
    if (outcome !== 'passed') {
      const args = ['-X', '-U', 'postgres_js_test', '-d', 'postgres_js_test', '-c', dropTable];
      spawnSync('psql', args, { stdio: 'ignore' });
    }
    process.stdout.write(`${outcome === 'passed' ? `passed\t${name}` : outcome.replaceAll('\n', ' ')}\n`);
  }
  process.exit(0);
});
process.on('unhandledRejection', (error) => process.stdout.write(`unhandled ${error}\n`));
process.on('uncaughtException', (error) => process.stdout.write(`uncaught ${error}\n`));
