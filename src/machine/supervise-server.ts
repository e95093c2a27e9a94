/** Starts the server of the system database again when it ends by itself, and cuts its log when that has grown. */
import { findPostmaster } from '../compute/local/host/postgres/postmaster.ts';
import { cutLog } from '../compute/local/host/postgres/server-log.ts';
import { delay } from '../lib/clock.ts';
import { errorText } from '../lib/errors.ts';
import type { Logger } from '../lib/log.ts';

interface Supervised {
  readonly dataDirectory: string;
  readonly logDirectory: string;
  readonly uid: number | null;
  readonly log: Logger;
  readonly startAgain: () => Promise<void>;
}

const everyMs = 250;
/** How often only the process is looked for, between two looks at its files. */
const cheapLooks = 7;
const firstPauseMs = 100;
const pauseMsMax = 10_000;

export async function superviseServer(server: Supervised, signal: AbortSignal): Promise<void> {
  const { dataDirectory, logDirectory, uid, log } = server;
  let pauseMs = firstPauseMs;
  let seen: { readonly pid: number; looks: number } | null = null;
  for (await delay(everyMs, signal); !signal.aborted; await delay(everyMs, signal)) {
    // The end of a process is one cheap call away; who has its number by now, or its remains, is seen a little later.
    if (seen !== null && seen.looks-- > 0 && isThere(seen.pid)) continue;
    const found = await findPostmaster(dataDirectory, uid);
    await cutLog(logDirectory).catch((error) => log.warn({ reason: errorText(error) }, 'a log cannot be cut'));
    seen = found === null ? null : { pid: found.pid, looks: cheapLooks };
    if (found !== null) continue;
    log.error('the system database ended by itself; starting it again');
    try {
      await server.startAgain();
      pauseMs = firstPauseMs;
    } catch (error) {
      log.error({ reason: errorText(error) }, 'the system database does not start');
      await delay(pauseMs, signal);
      pauseMs = Math.min(pauseMs * 2, pauseMsMax);
    }
  }
}

function isThere(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
