/**
 * Reports when a starting server has written its pid file, without polling every millisecond: on two cores that took a
 * tenth of the start itself. The kernel's notification makes it fast, a slower poll makes it correct.
 */
import { type FSWatcher, watch } from 'node:fs';
import { delay } from '../../../../lib/clock.ts';

export const pidFileName = 'postmaster.pid';

export interface PidFileWatch {
  /** Resolves when the file may have changed since the last call, or after a while. */
  change(): Promise<void>;
  /** Makes `change` resolve at once: something else has happened that the caller must check. */
  wake(): void;
  close(): void;
}

const usualPollMs = 10;
/** Used where the kernel notifies late or not at all: it has no watches left, for example. */
const pollAloneMs = 1;

/** Start it before the server, so that nothing is missed. It only listens: the directory belongs to the tenant. */
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
