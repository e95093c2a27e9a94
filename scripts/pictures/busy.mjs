/**
 * Clients of the demo's shop while pictures are taken, so that graphs, sessions and locks have something to show: one
 * that asks and writes again and again, one that holds a lock, and one that waits for it. They change no value.
 */
import pg from 'pg';

const pauseMs = 300;
const measuredWanted = 8;
const waitMsMax = 240_000;
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const report = `select c.country, count(*) as orders, sum(o.total) as revenue
from customers c join orders o on o.customer_id = c.id group by c.country order by revenue desc`;

/** Call what it returns to end them. */
export async function keepBusy(demo, projectId) {
  const main = (await demo.branchesOf(projectId)).find((branch) => branch.default);
  const uri = await demo.uriOf(projectId, main.id);
  await demo.sql(uri, 'create extension if not exists pg_stat_statements');
  const clients = await Promise.all(['checkout', 'stock-keeping', 'nightly-report'].map((name) => connect(uri, name)));
  const [asking, holding, waiting] = clients;
  await holding.query('begin; update reviews set stars = stars where id = 7');
  const held = waiting.query('update reviews set stars = stars where id = 7').catch(() => undefined);
  let isOver = false;
  const loop = (async () => {
    for (let round = 0; !isOver; round += 1) {
      await asking.query(report);
      await asking.query('update reviews set stars = stars where id % 400 = $1', [round % 400 === 7 ? 8 : round % 400]);
      await pause(pauseMs);
    }
  })();
  return async () => {
    isOver = true;
    await loop;
    await holding.query('rollback');
    await held;
    await Promise.all(clients.map((client) => client.end()));
  };
}

async function connect(connectionString, name) {
  const client = new pg.Client({ connectionString, application_name: name });
  client.on('error', () => undefined);
  await client.connect();
  return client;
}

/** Until the compute of the default branch was measured often enough for a line. */
export async function waitForGraphs(demo, projectId) {
  const main = (await demo.branchesOf(projectId)).find((branch) => branch.default);
  const { endpoints } = await demo.api('GET', `/projects/${projectId}/endpoints`);
  const { id } = endpoints.find((one) => one.branch_id === main.id && one.type === 'read_write');
  const deadline = Date.now() + waitMsMax;
  while (Date.now() < deadline) {
    const from = new Date(Date.now() - 900_000).toISOString();
    const { samples } = await demo.api('GET', `/projects/${projectId}/endpoints/${id}/metrics?from=${from}`);
    if (samples.length >= measuredWanted) return;
    await pause(1_000);
  }
  console.log('monitoring: few measurements, because the compute has not been awake for long');
}
