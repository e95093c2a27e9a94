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
    const client = new pg.Client({ connectionString: connection_uris[0].connection_uri });
    const writer = new pg.Client({ connectionString: connection_uris[0].connection_uri });
    await client.connect();
    await writer.connect();
    const ids = { auth_provider: 'stack', project_id: project.id, branch_id: branch.id };
    await catnap.api('POST', '/projects/auth/create', ids);
    await writer.query('create table users (email text)');
    const [inserted, copied] = [[], []];
    for (let i = 0; i < repeats; i++) {
      const email = `user${i}@example.com`;
      inserted.push(
        await untilSeen(client, 'users', email, () => writer.query('insert into users values ($1)', [email])),
      );
      await catnap.api('POST', '/projects/auth/user', { ...ids, email });
      copied.push(await untilSeen(client, 'neon_auth.users_sync', email));
    }
    await client.end();
    await writer.end();
    const rows = [
      [insertName, inserted],
      ['Catnap: reply until the row is in users_sync', copied],
    ];
    printTable('A new user (ms)', rows, insertName);
    const { p95 } = summarize(copied);
    console.log(`  95 % within ${p95.toFixed(0)} ms; the target is ${boundMs}: ${p95 <= boundMs ? 'met' : 'MISSED'}`);
  } finally {
    await catnap.stop();
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
