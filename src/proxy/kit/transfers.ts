/**
 * Counts the bytes that clients are sent, by endpoint, and reports them in batches. A session adds to a number that all
 * sessions of its endpoint share, which costs the data path one addition for each chunk. A batch that could not be
 * reported is sent again unchanged, under its old number, so that it never counts twice; what is sent meanwhile goes
 * into the next one. A proxy that is killed loses what it has not reported: the last interval.
 */
import { randomUUID } from 'node:crypto';
import { errorText } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import type { TransferReport } from '../../lib/model.ts';
import type { ControlPlane } from './control-plane.ts';

/** Where one session counts. */
export interface Sent {
  bytes: number;
  /** The session is over. */
  close(): void;
}

export interface Transfers {
  open(endpointId: string): Sent;
  /** For a single reply. */
  add(endpointId: string, bytes: number): void;
  /** Stops the timer and reports what is left. */
  close(): Promise<void>;
}

class EndpointSent implements Sent {
  bytes = 0;
  sessions = 0;

  close(): void {
    this.sessions -= 1;
  }
}

export function startTransfers(options: { controlPlane: ControlPlane; log: Logger; intervalMs: number }): Transfers {
  const { controlPlane, log } = options;
  const reporter = randomUUID();
  const counted = new Map<string, EndpointSent>();
  let sequence = 0;
  let unreported: TransferReport | null = null;
  let sending: Promise<void> | null = null;

  const of = (endpointId: string): EndpointSent => {
    const known = counted.get(endpointId);
    if (known !== undefined) return known;
    const made = new EndpointSent();
    counted.set(endpointId, made);
    return made;
  };

  const nextReport = (): TransferReport | null => {
    const bytes = new Map<string, number>();
    for (const [endpointId, sent] of counted) {
      if (sent.bytes > 0) bytes.set(endpointId, sent.bytes);
      sent.bytes = 0;
      if (sent.sessions === 0) counted.delete(endpointId);
    }
    if (bytes.size === 0) return null;
    sequence += 1;
    return { reporter, sequence, bytes };
  };

  const send = async () => {
    unreported ??= nextReport();
    if (unreported === null) return;
    try {
      await controlPlane.reportTransfer(unreported);
      unreported = null;
    } catch (thrown) {
      log.warn({ reason: errorText(thrown) }, 'what was sent to clients was not recorded; it is reported again');
    }
  };
  // One report at a time: they must not queue up at a slow system database.
  const report = () => {
    sending ??= send().finally(() => {
      sending = null;
    });
  };
  const timer = setInterval(report, options.intervalMs);
  timer.unref();

  return {
    open(endpointId) {
      const sent = of(endpointId);
      sent.sessions += 1;
      return sent;
    },
    add(endpointId, bytes) {
      of(endpointId).bytes += bytes;
    },
    async close() {
      clearInterval(timer);
      await sending;
      const wasLate = unreported !== null;
      await send();
      if (wasLate && unreported === null) await send();
    },
  };
}
