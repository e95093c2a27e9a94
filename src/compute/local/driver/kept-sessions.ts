/**
 * A session of Catnap's own that is kept for a moment: a new server is entered to replace its first secret, and right
 * after that to make its first role and database. The second time needs no login, and finds warm caches.
 */
import { isRefused, type Session, useSession } from '../../server/admin-session.ts';

/** The next step of the start comes within milliseconds; a worker that died in between has no use for the session. */
const keptMs = 2_000;

interface Kept {
  readonly pid: number;
  readonly sql: Session;
  readonly timer: NodeJS.Timeout;
}

export class KeptSessions {
  readonly #kept = new Map<string, Kept>();

  /** `pid` is that of the server. */
  keep(endpointId: string, pid: number, sql: Session): void {
    this.end(endpointId);
    const timer = setTimeout(() => this.end(endpointId), keptMs);
    timer.unref();
    this.#kept.set(endpointId, { pid, sql, timer });
  }

  /** Works in the session that was kept with this very server, or in one that is opened, and ends it. */
  async use<T>(
    { endpointId, pid }: { readonly endpointId: string; readonly pid: number },
    open: () => Session,
    work: (sql: Session) => Promise<T>,
  ): Promise<T> {
    const kept = this.#take(endpointId, pid);
    if (kept === null) return useSession(open(), work);
    return useSession(kept, work).catch((error: unknown) => {
      // It had lost its connection, and has tried to log in again with the first secret.
      if (!isRefused(error)) throw error;
      return useSession(open(), work);
    });
  }

  #take(endpointId: string, pid: number): Session | null {
    const kept = this.#kept.get(endpointId);
    if (kept === undefined) return null;
    if (kept.pid !== pid) {
      this.end(endpointId);
      return null;
    }
    clearTimeout(kept.timer);
    this.#kept.delete(endpointId);
    return kept.sql;
  }

  end(endpointId: string): void {
    const kept = this.#kept.get(endpointId);
    if (kept === undefined) return;
    clearTimeout(kept.timer);
    this.#kept.delete(endpointId);
    // A server that has gone has ended it already.
    void kept.sql.end({ timeout: 1 }).catch(() => undefined);
  }
}
