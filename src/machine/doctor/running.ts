/** What a Catnap that runs already says of itself. */
import type { Config } from '../../lib/config.ts';

export interface Running {
  /** Null when it does not report it, or runs other processes only. */
  readonly pgPort: number | null;
  /** Null when it does not report it. */
  readonly limitsEnforced: boolean | null;
}

/** Asks the program on the HTTP port; null when it is not Catnap, or nobody is there. */
export async function findRunning({ bind, httpPort }: Pick<Config, 'bind' | 'httpPort'>): Promise<Running | null> {
  const host = bind === '0.0.0.0' || bind === '::' ? 'localhost' : bind.includes(':') ? `[${bind}]` : bind;
  try {
    const reply = await fetch(`http://${host}:${httpPort}/status.json`, { signal: AbortSignal.timeout(2_000) });
    const status: unknown = await reply.json();
    if (typeof status !== 'object' || status === null || !('name' in status) || status.name !== 'catnap') return null;
    return {
      pgPort: 'database_port' in status ? Number(status.database_port) : null,
      limitsEnforced: 'limits_enforced' in status ? status.limits_enforced === true : null,
    };
  } catch {
    return null;
  }
}
