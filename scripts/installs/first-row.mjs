/** The first start, the first project and its first row, as the README has them. */
import { spawn } from 'node:child_process';
import pg from 'pg';
import { run, secondsSince } from './kit.mjs';

/** Returns the seconds from the start until Catnap is up, and until a client has the first row. */
export async function measureFirstRow({ start: [command, ...words], call, cwd, env }) {
  const startedAt = performance.now();
  // In a group of its own, which is what Ctrl-C in a terminal reaches.
  const server = spawn(command, words, { cwd, env, detached: true, stdio: ['ignore', 'pipe', 2] });
  const ended = new Promise((done) => server.once('close', done).once('error', done));
  const interrupt = () => signal(server, 'SIGINT');
  for (const name of ['SIGINT', 'SIGTERM']) process.once(name, interrupt);
  try {
    await Promise.race([printed(server, 'Create a project'), ended.then(failStart)]);
    const up = secondsSince(startedAt);
    const made = JSON.parse(run(call('projects', 'create', 'first', '--json'), { cwd, env }));
    const row = await ask(made.connection_uris[0].connection_uri);
    return { up, firstRow: secondsSince(startedAt), row };
  } finally {
    interrupt();
    const killer = setTimeout(() => signal(server, 'SIGKILL'), 60_000);
    await ended;
    clearTimeout(killer);
    for (const name of ['SIGINT', 'SIGTERM']) process.removeListener(name, interrupt);
  }
}

/** As psql does by itself: with TLS, which Catnap asks of clients that are not on its machine, and any certificate. */
async function ask(uri) {
  const connectionString = `${uri}&uselibpqcompat=true`;
  const client = new pg.Client({ connectionString, ssl: { rejectUnauthorized: false } });
  await client.connect();
  try {
    return (await client.query('select version()')).rows[0].version;
  } finally {
    await client.end();
  }
}

function signal({ pid }, name) {
  try {
    if (pid !== undefined) process.kill(-pid, name);
  } catch {
    // It has ended.
  }
}

function printed(child, text) {
  return new Promise((done) => {
    let output = '';
    child.stdout.on('data', (chunk) => {
      output += chunk;
      if (output.includes(text)) done();
    });
  });
}

function failStart() {
  throw new Error('Catnap ended while starting; see the lines above');
}
