/**
 * Tells when a starting server has written its pid file, without looking every millisecond: on two cores the looking
 * took a tenth of what the start itself does. The kernel's word makes it quick, a poll makes it right.
 */
import { type FSWatcher, watch } from 'node:fs';
import { delay } from '../../../../lib/clock.ts';

export const pidFileName = 'postmaster.pid';

export interface PidFileWatch {
  /** Resolves when the file may have changed since the last call, or after a while. */
  change(): Promise<void>;
  /** Something else has happened that is worth a look. */
  wake(): void;
  close(): void;
}

const usualPollMs = 10;
/** Where the kernel tells nothing, or late: no more watches to be had, say. */
const pollAloneMs = 1;

/** To be begun before the server is, so that nothing is missed. The directory is the tenant's, and only listened to. */
export function watchPidFile(dataDirectory: string, pollMs = usualPollMs): PidFileWatch {
  let news = new AbortController();
  const wake = () => news.abort();
  let everyMs = pollMs;
  const giveUp = () => {
    everyMs = pollAloneMs;
    wake();
  };
  const watcher = tryWatch(dataDirectory, (name) => {
    if (name === null || name === pidFileName) wake();
  });
  if (watcher === null) giveUp();
  watcher?.on('error', giveUp);
  return {
    change: async () => {
      await delay(everyMs, news.signal);
      news = new AbortController();
    },
    wake,
    close: () => watcher?.close(),
  };
}

function tryWatch(directory: string, onChange: (name: string | null) => void): FSWatcher | null {
  if (process.platform !== 'linux') return null;
  try {
    return watch(directory, { persistent: false }, (_event, name) => onChange(name));
  } catch {
    return null;
  }
}
