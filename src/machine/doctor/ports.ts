/** Checks the two ports: free, or used by a running Catnap. */
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { Config } from '../../lib/config.ts';
import { type Check, fail, ok, warn } from './check.ts';
import type { Running } from './running.ts';

/** The same as in `machine/ports.ts`. */
const fallbackPgPort = 7432;

const taken = 'taken by another program';

type PortConfig = Pick<Config, 'bind' | 'httpPort' | 'pgPort' | 'pgPortIsExplicit'>;

export async function checkPorts(config: PortConfig, running: Running | null): Promise<Check[]> {
  return [await checkHttpPort(config, running), await checkPgPort(config, running)];
}

async function checkHttpPort({ bind, httpPort }: PortConfig, running: Running | null): Promise<Check> {
  const name = 'HTTP port';
  if (running !== null) return ok(name, `${httpPort}, where Catnap is running`);
  const problem = await tryPort(bind, httpPort);
  if (problem === null) return ok(name, `${httpPort} is free`);
  return fail(name, `${httpPort}: ${problem}`, 'set CATNAP_HTTP_PORT to another port');
}

async function checkPgPort(config: PortConfig, running: Running | null): Promise<Check> {
  const { bind, pgPort, pgPortIsExplicit } = config;
  const name = 'database port';
  if (running?.pgPort != null) return ok(name, `${running.pgPort}, where Catnap is running`);
  const problem = await tryPort(bind, pgPort);
  if (problem === null) return ok(name, `${pgPort} is free`);
  // It does not say so to a user who has no key, and nothing is wrong with a port that it serves.
  if (running !== null && problem === taken) return ok(name, `${pgPort} is taken, as Catnap is running`);
  if (!pgPortIsExplicit && (await tryPort(bind, fallbackPgPort)) === null) {
    return warn(name, `${pgPort}: ${problem}`, `${fallbackPgPort} will be used; set CATNAP_PG_PORT to choose`);
  }
  return fail(name, `${pgPort}: ${problem}`, 'set CATNAP_PG_PORT to another port');
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
    if (code === 'EADDRINUSE') return taken;
    if (code === 'EACCES') return 'ports below 1024 need root';
    if (code === 'EADDRNOTAVAIL') return `${host} is not an address of this machine`;
    return String(code ?? error);
  } finally {
    server.close();
  }
}
