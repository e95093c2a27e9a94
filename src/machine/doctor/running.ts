/** What a Catnap that runs already says of itself. */
import type { Config } from '../../lib/config.ts';
import { readApiKey } from '../key-files.ts';

export interface Running {
  /** Null when it does not report it, or runs other processes only. */
  readonly pgPort: number | null;
  /** Null when it does not report it. */
  readonly limitsEnforced: boolean | null;
}

type Place = Pick<Config, 'bind' | 'httpPort' | 'home' | 'apiKey'>;

/** Asks the program on the HTTP port; null when it is not Catnap, or nobody is there. */
export async function findRunning(place: Place): Promise<Running | null> {
  const brief = await askStatus(place);
  if (brief === null) return null;
  // Where Catnap listens for other machines too, it says the rest only to those who have a key.
  const status = 'database_port' in brief ? brief : ((await askStatus(place, await findKey(place))) ?? brief);
  return {
    pgPort: 'database_port' in status ? Number(status.database_port) : null,
    limitsEnforced: 'limits_enforced' in status ? status.limits_enforced === true : null,
  };
}

async function askStatus({ bind, httpPort }: Place, key?: string): Promise<object | null> {
  const host = bind === '0.0.0.0' || bind === '::' ? 'localhost' : bind.includes(':') ? `[${bind}]` : bind;
  try {
    const reply = await fetch(`http://${host}:${httpPort}/status.json`, {
      headers: key === undefined ? {} : { authorization: `Bearer ${key}` },
      signal: AbortSignal.timeout(2_000),
    });
    const status: unknown = await reply.json();
    return typeof status === 'object' && status !== null && 'name' in status && status.name === 'catnap'
      ? status
      : null;
  } catch {
    return null;
  }
}

/** Undefined where there is none, or this user may not read it. */
async function findKey({ home, apiKey }: Place): Promise<string | undefined> {
  return apiKey ?? (await readApiKey(home).catch(() => undefined));
}
