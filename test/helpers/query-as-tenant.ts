/** One statement as a client of the tenant's would send it: nothing of Catnap's own session settings. */
import postgres from 'postgres';
import type { Login } from '../../src/compute/server/admin-session.ts';
import type { ComputeAddress } from '../../src/lib/model.ts';

export async function queryAsTenant(
  address: ComputeAddress,
  login: Login,
  text: string,
): Promise<Record<string, unknown>[]> {
  const place = address.kind === 'unix' ? { path: address.path } : { host: address.host, port: address.port };
  const sql = postgres({ ...place, ...login, max: 1, onnotice: () => undefined });
  try {
    return [...(await sql.unsafe(text))];
  } finally {
    await sql.end({ timeout: 1 });
  }
}
