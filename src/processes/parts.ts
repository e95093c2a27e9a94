/** The parts every role is built from. */

import type { Core } from '../core/context.ts';
import { type Database, openDatabase } from '../db/client.ts';
import { systemClock } from '../lib/clock.ts';
import { createLogger, type Logger } from '../lib/log.ts';
import { createSecretBox } from '../lib/secrets.ts';
import type { RoleInit } from './channel/messages.ts';

export interface RoleParts {
  readonly core: Core;
  readonly log: Logger;
  readonly init: RoleInit;
  /** The one to show at the moment. */
  readonly certificate: () => RoleInit['certificate'];
}

export interface RunningRole {
  /** Ends the role in order; the process exits after it. */
  stop(): Promise<void>;
}

/** Connections that each role keeps to the system database at most. */
const poolSizes = { api: 20, worker: 16, proxy: 8 } as const;

/** One connection for one purpose: never waited for, never closed, its statements prepared by earlier uses. */
export function openOwnConnection({ database, role }: RoleInit): Database {
  return openDatabase(database, { poolSize: 1, name: `catnap-${role}`, idleSeconds: 0 });
}

/**
 * For asking for a wake. The second one is for when the first waits for a lock. A crash of the database may lose what
 * was asked just before, and the connection of whoever asked with it: a wake does not wait for the disk.
 */
export function openWakeConnections({ database, role }: RoleInit): Database {
  return openDatabase(database, { poolSize: 2, name: `catnap-${role}`, idleSeconds: 0, waitForDisk: false });
}

export function buildParts(init: RoleInit, certificate: RoleParts['certificate']): RoleParts {
  const { config, role } = init;
  return {
    init,
    certificate,
    log: createLogger({
      level: config.logLevel,
      role: config.proxies > 1 && role === 'proxy' ? `proxy ${init.proxyNumber}` : role,
    }),
    core: {
      database: openDatabase(init.database, {
        poolSize: poolSizes[role],
        name: `catnap-${role}`,
        // After a quiet night the first client would wait for a connection to be made before anything is looked up.
        // What a proxy writes is what it has seen, when a compute was used say: after a crash it is seen again, so
        // nobody need wait for the disk, least of all the wake behind it that wants the same row.
        ...(role === 'proxy' && { idleSeconds: 0, waitForDisk: false }),
      }),
      box: createSecretBox(Buffer.from(init.secretKey, 'base64')),
      clock: systemClock,
      config,
    },
  };
}
