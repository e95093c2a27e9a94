/**
 * Ends open sessions whose address is no longer allowed. A notification says that the rules of some project may have
 * changed; a poll finds what no notification announced. Both read the rules of everything that has sessions here.
 */
import { type CatnapError, errorText } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import type { ControlPlane } from '../kit/control-plane.ts';
import { refusalOf } from './access.ts';

export interface WatchedSession {
  /** The endpoint or branch that its rules are those of. */
  readonly accessName: string;
  readonly address: string;
  /** Called once the address is not allowed any more. */
  endAccess(refusal: CatnapError): void;
}

export interface AccessWatch {
  /** How often the rules may have changed so far: a login that began at another count has read old ones. */
  readonly changes: number;
  /** Returns the function that ends the watch; it may be called more than once. */
  watch(session: WatchedSession): () => void;
  /** Resolves when every session was held against rules that were read after this call. */
  check(): Promise<void>;
  close(): void;
}

const pollMs = 30_000;

export function createAccessWatch(controlPlane: ControlPlane, log: Logger): AccessWatch {
  const sessions = new Set<WatchedSession>();
  let changes = 0;
  let reading: Promise<void> | null = null;
  let next: Promise<void> | null = null;

  const read = async () => {
    if (sessions.size === 0 || controlPlane.findAccess === undefined) return;
    try {
      const rules = await controlPlane.findAccess([...new Set([...sessions].map(({ accessName }) => accessName))]);
      for (const session of [...sessions]) {
        const ofSession = rules.get(session.accessName);
        const refusal = ofSession === undefined ? null : refusalOf(ofSession, session.address);
        if (refusal === null) continue;
        sessions.delete(session);
        session.endAccess(refusal);
      }
    } catch (thrown) {
      log.warn({ reason: errorText(thrown) }, 'the access rules of open sessions could not be read');
    }
  };

  /** Any number of calls during a reading are answered by the one after it. */
  const check = (): Promise<void> => {
    if (reading !== null) {
      next ??= reading.then(() => {
        next = null;
        return check();
      });
      return next;
    }
    reading = read().finally(() => {
      reading = null;
    });
    return reading;
  };

  controlPlane.onAccessChange?.(() => {
    changes += 1;
    void check();
  });
  const timer = setInterval(() => void check(), pollMs);
  timer.unref();

  return {
    get changes() {
      return changes;
    },
    watch(session) {
      sessions.add(session);
      return () => void sessions.delete(session);
    },
    check,
    close: () => clearInterval(timer),
  };
}
