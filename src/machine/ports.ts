/** Checks whether the ports are free, before anything is started. */
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { Config } from '../lib/config.ts';

const fallbackPgPort = 7432;

export interface PortChoice {
  readonly config: Config;
  /** For people, when another database port had to be used. */
  readonly note: string | null;
}

export async function choosePorts(config: Config, wanted: { http: boolean; pg: boolean }): Promise<PortChoice> {
  if (wanted.http && !(await isFree(config.bind, config.httpPort))) {
    throw new Error(`port ${config.httpPort} on ${config.bind} is taken: set CATNAP_HTTP_PORT to a free one`);
  }
  if (!wanted.pg || (await isFree(config.bind, config.pgPort))) return { config, note: null };
  if (config.pgPortIsExplicit) {
    throw new Error(`port ${config.pgPort} on ${config.bind} is taken: set CATNAP_PG_PORT to a free one`);
  }
  if (!(await isFree(config.bind, fallbackPgPort))) {
    throw new Error(`ports ${config.pgPort} and ${fallbackPgPort} are both taken: set CATNAP_PG_PORT to a free one`);
  }
  return {
    config: Object.freeze({ ...config, pgPort: fallbackPgPort }),
    note: `port ${config.pgPort} is taken, so databases are on ${fallbackPgPort}; set CATNAP_PG_PORT to choose`,
  };
}

async function isFree(host: string, port: number): Promise<boolean> {
  const server = createServer();
  server.listen({ host, port });
  try {
    await once(server, 'listening');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') return false;
    throw error;
  }
  server.close();
  await once(server, 'close');
  return true;
}
