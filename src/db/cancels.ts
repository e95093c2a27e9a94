/** Cancel requests that have reached a Catnap which did not give out their key: another one may have. */
import type { Sql } from './client.ts';

export const cancelsChannel = 'catnap_cancels';

export async function announceCancel(sql: Sql, key: string): Promise<void> {
  await sql`select pg_notify(${cancelsChannel}, ${key})`;
}
