/**
 * When each endpoint was last used, kept in memory and reported in batches. The first use after a pause is reported at
 * once: the compute may be about to be suspended, and a second later would be too late.
 */
import type { Clock } from '../../lib/clock.ts';
import { errorText } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import type { ControlPlane } from './control-plane.ts';

export interface Activity {
  /** Called for every chunk from a client, so it must be cheap. */
  note(endpointId: string): void;
  /** Stops the timer and sends what is left. */
  close(): Promise<void>;
}

export function startActivity(options: {
  controlPlane: ControlPlane;
  clock: Clock;
  log: Logger;
  intervalMs: number;
}): Activity {
  const { controlPlane, clock, log } = options;
  let seen = new Map<string, Date>();
  let sending: Promise<void> = Promise.resolve();

  const send = async () => {
    if (seen.size === 0) return;
    const batch = seen;
    seen = new Map();
    try {
      await controlPlane.reportActivity(batch);
    } catch (thrown) {
      log.warn({ reason: errorText(thrown) }, 'activity was not recorded; it goes with the next report');
      for (const [endpointId, at] of batch) if (!seen.has(endpointId)) seen.set(endpointId, at);
    }
  };
  // One report at a time: they must not queue up at a slow system database.
  let busy = false;
  const report = () => {
    if (busy) return;
    busy = true;
    sending = send().finally(() => {
      busy = false;
    });
  };
  let recent = new Set<string>();
  const timer = setInterval(() => {
    recent = new Set(seen.keys());
    report();
  }, options.intervalMs);
  timer.unref();

  return {
    note: (endpointId) => {
      seen.set(endpointId, clock.now());
      if (recent.has(endpointId)) return;
      recent.add(endpointId);
      report();
    },
    async close() {
      clearInterval(timer);
      await sending;
      await send();
    },
  };
}
