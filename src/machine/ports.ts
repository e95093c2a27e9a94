/** Checks whether the ports are free, before anything is started. */
import { once } from 'node:events';
import { createServer } from 'node:net';
import { type Config, ConfigError } from '../lib/config.ts';

const fallbackPgPort = 7432;

export interface PortChoice {
  readonly config: Config;
  /** For people, when another database port had to be used. */
  readonly note: string | null;
}

export async function choosePorts(config: Config, wanted: { http: boolean; pg: boolean }): Promise<PortChoice> {
  if (wanted.http && !(await isFree(config.bind, config.httpPort, 'CATNAP_HTTP_PORT'))) {
    throw new Error(`port ${config.httpPort} on ${config.bind} is taken: set CATNAP_HTTP_PORT to a free one`);
  }
  if (!wanted.pg || (await isFree(config.bind, config.pgPort, 'CATNAP_PG_PORT'))) return { config, note: null };
  if (config.pgPortIsExplicit) {
    throw new Error(`port ${config.pgPort} on ${config.bind} is taken: set CATNAP_PG_PORT to a free one`);
  }
  if (!(await isFree(config.bind, fallbackPgPort, 'CATNAP_PG_PORT'))) {
    throw new Error(`ports ${config.pgPort} and ${fallbackPgPort} are both taken: set CATNAP_PG_PORT to a free one`);
  }
  return {
    config: Object.freeze({ ...config, pgPort: fallbackPgPort }),
    note: `port ${config.pgPort} is taken, so databases are on ${fallbackPgPort}; set CATNAP_PG_PORT to choose`,
  };
}

async function isFree(host: string, port: number, setting: string): Promise<boolean> {
  const server = createServer();
  server.listen({ host, port });
  try {
    await once(server, 'listening');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EADDRINUSE') return false;
    if (code === 'EACCES') throw new ConfigError(setting, String(port), '1024 or more, since ports below need root');
    if (code === 'EADDRNOTAVAIL') throw new ConfigError('CATNAP_BIND', host, 'an address of this machine');
    throw error;
  }
  server.close();
  await once(server, 'close');
  return true;
}
