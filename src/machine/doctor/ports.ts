/** Checks the two ports: free, or used by a running Catnap. */
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { Config } from '../../lib/config.ts';
import { type Check, fail, ok, warn } from './check.ts';

/** The same as in `machine/ports.ts`. */
const fallbackPgPort = 7432;

type PortConfig = Pick<Config, 'bind' | 'httpPort' | 'pgPort' | 'pgPortIsExplicit'>;

export async function checkPorts(config: PortConfig): Promise<Check[]> {
  const own = await findCatnap(config);
  return [await checkHttpPort(config, own), await checkPgPort(config, own)];
}

async function checkHttpPort({ bind, httpPort }: PortConfig, own: OwnPorts | null): Promise<Check> {
  const name = 'HTTP port';
  if (own !== null) return ok(name, `${httpPort}, where Catnap is running`);
  const problem = await tryPort(bind, httpPort);
  if (problem === null) return ok(name, `${httpPort} is free`);
  return fail(name, `${httpPort}: ${problem}`, 'set CATNAP_HTTP_PORT to another port');
}

async function checkPgPort(config: PortConfig, own: OwnPorts | null): Promise<Check> {
  const { bind, pgPort, pgPortIsExplicit } = config;
  const name = 'database port';
  if (own?.pgPort != null) return ok(name, `${own.pgPort}, where Catnap is running`);
  const problem = await tryPort(bind, pgPort);
  if (problem === null) return ok(name, `${pgPort} is free`);
  if (!pgPortIsExplicit && (await tryPort(bind, fallbackPgPort)) === null) {
    return warn(name, `${pgPort}: ${problem}`, `${fallbackPgPort} will be used; set CATNAP_PG_PORT to choose`);
  }
  return fail(name, `${pgPort}: ${problem}`, 'set CATNAP_PG_PORT to another port');
}

interface OwnPorts {
  /** Null when the running Catnap does not report it, or runs other processes only. */
  readonly pgPort: number | null;
}

/** Asks the program on the HTTP port whether it is Catnap, and where its databases are. */
async function findCatnap({ bind, httpPort }: PortConfig): Promise<OwnPorts | null> {
  const host = bind === '0.0.0.0' || bind === '::' ? 'localhost' : bind.includes(':') ? `[${bind}]` : bind;
  try {
    const reply = await fetch(`http://${host}:${httpPort}/status.json`, { signal: AbortSignal.timeout(2_000) });
    const status: unknown = await reply.json();
    if (typeof status !== 'object' || status === null || !('name' in status) || status.name !== 'catnap') return null;
    return { pgPort: 'database_port' in status ? Number(status.database_port) : null };
  } catch {
    return null;
  }
}

/** Null when the port is free, otherwise the reason. */
async function tryPort(host: string, port: number): Promise<string | null> {
  const server = createServer();
  try {
    server.listen({ host, port });
    await once(server, 'listening');
    return null;
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'EADDRINUSE') return 'taken by another program';
    if (code === 'EACCES') return 'ports below 1024 need root';
    if (code === 'EADDRNOTAVAIL') return `${host} is not an address of this machine`;
    return String(code ?? error);
  } finally {
    server.close();
  }
}
