/** The parts that every child process is built from. */

import type { Core } from '../core/context.ts';
import { type Database, openDatabase } from '../db/client.ts';
import { systemClock } from '../lib/clock.ts';
import type { Config } from '../lib/config.ts';
import { createLogger, type Logger } from '../lib/log.ts';
import { createSecretBox } from '../lib/secrets.ts';
import type { ChildEnd, ChildInit, ProcessName } from './channel/messages.ts';

export interface ProcessParts {
  readonly core: Core;
  readonly log: Logger;
  readonly init: ChildInit;
  /** The channel to the parent. */
  readonly channel: ChildEnd;
  /** The certificate to show at the moment. */
  readonly certificate: () => ChildInit['certificate'];
}

export interface RunningProcess {
  /** Ends its work in order; the process exits after it. */
  stop(): Promise<void>;
}

/** The most connections that each process keeps to the system database. */
const poolSizes = { api: 20, worker: 16, proxy: 8, backup: 2 } as const;

/** Longer than a client that comes again lets wait. */
const quietSeconds = 60;

/** One connection for one purpose: never shared, and open while it is used, its statements prepared by earlier uses. */
export function openOwnConnection({ database, name }: ChildInit): Database {
  return openDatabase(database, { poolSize: 1, name: `catnap-${name}`, idleSeconds: quietSeconds });
}

/**
 * For requesting a wake. The second connection is for when the first waits for a lock. A crash of the database may lose
 * the latest requests, but also ends the connections of the clients that made them: a wake does not wait for the disk.
 */
export function openWakeConnections({ database, name }: ChildInit): Database {
  const settings = { poolSize: 2, idleSeconds: quietSeconds, keepsOne: true, waitForDisk: false };
  return openDatabase(database, { ...settings, name: `catnap-${name}` });
}

/** How many processes of a name there are. */
export function countOf({ apis, workers, proxies }: Config, name: ProcessName): number {
  return { api: apis, worker: workers, proxy: proxies, backup: 1 }[name];
}

export function buildParts(init: ChildInit, channel: ChildEnd, certificate: ProcessParts['certificate']): ProcessParts {
  const { config, name } = init;
  return {
    init,
    channel,
    certificate,
    log: createLogger({
      level: config.logLevel,
      format: config.logFormat,
      process: countOf(config, name) > 1 ? `${name} ${init.number}` : name,
    }),
    core: {
      database: openDatabase(init.database, {
        poolSize: poolSizes[name],
        name: `catnap-${name}`,
        // A proxy keeps a connection open: after a quiet night the first client would otherwise wait for a new one.
        // A proxy writes only what it has seen, such as when a compute was last used: after a crash it is seen again,
        // so waiting for the disk gains nothing, and would delay a wake that needs the same row.
        ...(name === 'proxy' && { idleSeconds: quietSeconds, keepsOne: true, waitForDisk: false }),
        ...(name === 'worker' && { lifeSeconds: quietSeconds }),
      }),
      box: createSecretBox(Buffer.from(init.secretKey, 'base64')),
      clock: systemClock,
      config,
    },
  };
}
