/** From the reply that creates a user to the row in `users_sync`, beside an INSERT of such a row by an application. */
import pg from 'pg';
import { startCatnap } from './catnap.mjs';
import { printTable, summarize } from './stats.mjs';

const repeats = Number(process.env.BENCH_USERS ?? 30);
const boundMs = 1_000;
const insertName = 'an INSERT, until another session sees it';

export async function benchUsersSync() {
  const catnap = await startCatnap();
  try {
    const { project, branch, connection_uris } = await catnap.api('POST', '/projects', { project: {} });
    const app = { auth_provider: 'stack', project_id: project.id };
    await withClients(connection_uris[0].connection_uri, async (reader, writer) => {
      await catnap.api('POST', '/projects/auth/create', { ...app, branch_id: branch.id });
      await compare(catnap, app, reader, writer);
    });
  } finally {
    await catnap.stop();
  }
}

async function compare(catnap, app, reader, writer) {
  await writer.query('create table users (email text)');
  const [inserted, copied] = [[], []];
  for (let i = 0; i < repeats; i++) {
    const email = `user${i}@example.com`;
    inserted.push(
      await untilSeen(reader, 'users', email, () => writer.query('insert into users values ($1)', [email])),
    );
    await catnap.api('POST', '/projects/auth/user', { ...app, email });
    copied.push(await untilSeen(reader, 'neon_auth.users_sync', email));
  }
  const rows = [
    [insertName, inserted],
    ['Catnap: reply until the row is in users_sync', copied],
  ];
  printTable('A new user (ms)', rows, insertName);
  const { p95 } = summarize(copied);
  console.log(`  95 % within ${p95.toFixed(0)} ms; the target is ${boundMs}: ${p95 <= boundMs ? 'met' : 'MISSED'}`);
}

/** Ends them before Catnap stops, which would otherwise hide why the work failed. */
async function withClients(connectionString, work) {
  const clients = [new pg.Client({ connectionString }), new pg.Client({ connectionString })];
  try {
    for (const client of clients) await client.connect();
    await work(...clients);
  } finally {
    for (const client of clients) await client.end();
  }
}

async function untilSeen(client, table, email, begin = async () => {}) {
  const startedAt = performance.now();
  await begin();
  for (;;) {
    const { rows } = await client.query(`select 1 from ${table} where email = $1`, [email]);
    if (rows.length > 0) return performance.now() - startedAt;
  }
}
