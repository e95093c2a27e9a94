/** What `pgbench` connects to: a server itself, PgBouncer in front of it, and Catnap's port. */
import { readdir, readFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { selectOne } from './catnap.mjs';
import { bouncerVersion, startPgBouncer } from './pgbouncer.mjs';
import { findProxies } from './processes.mjs';

/** Part of a server's sessions that Catnap gives one pool. */
const poolShare = 0.9;

/** A project with its server awake, and the targets that lead to it. `label` says what is special about this Catnap. */
export async function makeServer(catnap, label = '') {
  // As large as the machine, so that its size is not what is measured, and awake although nobody comes through Catnap.
  const cu = Math.min(4, availableParallelism());
  const settings = { autoscaling_limit_min_cu: cu, autoscaling_limit_max_cu: cu, suspend_timeout_seconds: -1 };
  const made = await catnap.api('POST', '/projects', { project: { default_endpoint_settings: settings } });
  const uri = new URL(made.connection_uris[0].connection_uri);
  const login = { user: uri.username, password: decodeURIComponent(uri.password), database: uri.pathname.slice(1) };
  const endpointId = made.endpoints[0].id;
  await selectOne({ connectionString: uri.href });
  const socket = await findSocket(catnap.home, login);
  const port = uri.port || '5432';
  const base = { PGUSER: login.user, PGPASSWORD: login.password, PGDATABASE: login.database };
  const pids = await findProxies(catnap.pid);
  const target = (name, hostname, targetPort, tls, more = {}) => ({
    name,
    pids: [],
    env: { ...base, PGHOST: hostname, PGPORT: targetPort, PGSSLMODE: tls ? 'require' : 'disable', ...more },
  });
  return {
    home: catnap.home,
    uri: uri.href,
    login,
    endpointId,
    socket,
    port: Number(port),
    target,
    direct: target('direct, unix socket', socket, '5432', false),
    sessions: (tls) => ({
      ...target(`Catnap direct${label}`, '127.0.0.1', port, tls, { PGOPTIONS: `endpoint=${endpointId}` }),
      pids,
    }),
    pooled: (tls) => ({
      ...target(`Catnap pooled${label}`, '127.0.0.1', port, tls, { PGOPTIONS: `endpoint=${endpointId}-pooler` }),
      pids,
      isPool: true,
    }),
  };
}

/** PgBouncer runs only while it is measured: otherwise its idle connections would take up the server's. */
export async function withBouncer(server, mode, tls, work) {
  const { home, socket, login, target } = server;
  const [takes, reserved] = await readNumbers(server, 'show max_connections; show superuser_reserved_connections');
  const certificate = await readFile(join(home, 'certificates', 'server.pem'), 'utf8');
  const directory = join(home, `bench-pgbouncer-${mode}-${tls}`);
  const poolSize = Math.floor(poolShare * (takes - reserved));
  const bouncer = await startPgBouncer({ mode, tls, directory, socket, login, poolSize, certificate });
  try {
    const isPool = mode === 'transaction';
    const lacksPrepared = isPool && bouncerVersion() < 1.21;
    const pids = [bouncer.pid];
    await work({ ...target(`PgBouncer ${mode}`, '127.0.0.1', bouncer.port, tls), pids, isPool, lacksPrepared });
  } finally {
    await bouncer.stop();
  }
}

/** The one socket in the home that accepts the project's login. */
async function findSocket(home, login) {
  for (const name of await readdir(join(home, 's'))) {
    const socket = join(home, 's', name);
    const found = await readNumbers({ socket, login }, 'select 1').catch(() => null);
    if (found !== null) return socket;
  }
  throw new Error('the server was not found');
}

async function readNumbers({ socket, login }, text) {
  const client = new pg.Client({ host: socket, ...login });
  await client.connect();
  const results = [await client.query(text)].flat();
  await client.end();
  return results.map(({ rows }) => Number(Object.values(rows[0])[0]));
}
