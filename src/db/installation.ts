/** What all Catnaps on one system database have in common. */
import { one, type Sql } from './client.ts';

/** Records the fingerprint of the key if there is none yet; returns the one that is recorded. */
export async function claimKeyFingerprint(sql: Sql, fingerprint: Buffer): Promise<Buffer> {
  await sql`insert into installation (key_fingerprint) values (${fingerprint}) on conflict do nothing`;
  const rows = await sql<{ keyFingerprint: Buffer }[]>`select key_fingerprint from installation`;
  return Buffer.from(one(rows).keyFingerprint);
}
