/**
 * Restores something from the store now and then, if the operator has asked for it (CATNAP_BACKUP_VERIFY). It is the
 * command that a person would run, in a process of its own: it needs the parent's rights, and must not disturb it.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Core } from '../../core/context.ts';
import { selectBackupState } from '../../db/backups.ts';
import { delay, minuteMs } from '../../lib/clock.ts';
import { errorText } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';

/** How often it looks whether a check is due; the first look leaves time for the first uploads. */
const lookEveryMsDefault = 10 * minuteMs;

export interface VerifyTiming {
  readonly lookEveryMs?: number;
  /** Restores and checks something, and records what it has found. */
  readonly verify?: (log: Logger, signal: AbortSignal) => Promise<void>;
}

export function startVerifying(
  everySeconds: number,
  core: Pick<Core, 'database' | 'clock'>,
  log: Logger,
  { lookEveryMs = lookEveryMsDefault, verify = verifySample }: VerifyTiming = {},
): { stop(): Promise<void> } {
  const stopping = new AbortController();
  const { signal } = stopping;
  const run = async () => {
    for (await delay(lookEveryMs, signal); !signal.aborted; await delay(lookEveryMs, signal)) {
      try {
        const last = (await selectBackupState(core.database.sql))?.verifiedAt ?? null;
        if (isVerifyDue(last, everySeconds, core.clock.now())) await verify(log, signal);
      } catch (error) {
        if (!signal.aborted) log.error({ reason: errorText(error) }, 'the backup was not verified');
      }
    }
  };
  const running = run();
  return {
    stop: () => {
      stopping.abort();
      return running;
    },
  };
}

/** A clock that was set back makes it due too: better once more than not for a long time. */
export function isVerifyDue(last: Date | null, everySeconds: number, now: Date): boolean {
  if (last === null) return true;
  return Math.abs(now.getTime() - last.getTime()) >= everySeconds * 1_000;
}

async function verifySample(log: Logger, signal: AbortSignal): Promise<void> {
  const words = [process.argv[1] ?? '', 'backup', 'verify', '--sample', '1'];
  const child = spawn(process.execPath, words, { stdio: 'ignore', signal, killSignal: 'SIGTERM' });
  const [code] = (await once(child, 'exit')) as [number | null];
  if (code === 0) log.info('a sample of the backup was restored and is in order');
  else
    log.error({ code }, 'a sample of the backup could not be restored, or is not in order: see catnap backup status');
}
