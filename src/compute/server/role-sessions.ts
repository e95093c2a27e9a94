/** The sessions of one role, whatever they do and however they came. */
import type { Session } from './admin-session.ts';

const endMsMax = 2_000;

/** Returns when they are gone, or would not go in time. */
export async function endSessionsOf(sql: Session, role: string): Promise<void> {
  await sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = ${role}`;
  await sql`SELECT pg_terminate_backend(pid, ${endMsMax}) FROM pg_stat_activity WHERE usename = ${role}`;
}
