/** A run of pgbench at a connection string: transactions a second, and how many failed. */
import { spawn } from 'node:child_process';
import { findProgram, programs } from './pgbouncer.mjs';

/** Null where it is not installed. */
export const findPgbench = () => findProgram('pgbench');

export async function preparePgbench(uri, scale) {
  await run(['-i', '-q', '-s', scale, uri]);
}

export async function runPgbench(uri, { clients, seconds, words = [] }) {
  const output = await run(['-n', '-c', clients, '-j', 1, '-T', seconds, ...words, uri]);
  return {
    perSecond: Number(/tps = ([\d.]+)/.exec(output)?.[1] ?? 0),
    failed: Number(/failed transactions: (\d+)/.exec(output)?.[1] ?? 0),
  };
}

function run(words) {
  return new Promise((resolve, reject) => {
    const child = spawn(findPgbench(), words.map(String), { env: { ...process.env, ...programs } });
    let output = '';
    let complaint = '';
    child.stdout.on('data', (chunk) => (output += chunk));
    child.stderr.on('data', (chunk) => (complaint += chunk));
    child.on('close', (code) => {
      if (code === 0) resolve(output);
      else reject(new Error(`pgbench ${words.slice(0, -1).join(' ')}: ${complaint.trim().split('\n').at(-1)}`));
    });
  });
}
