/**
 * The right of Catnap's login to hold backups and slots of the system database. New databases are made with it. One
 * that an older version made gets it once, from a private server, since superusers cannot log in to the real one.
 */
import postgres from 'postgres';
import { type ScratchSpec, startScratchServer } from '../recovery/scratch-server.ts';

/** Run in the database `postgres`, whose functions they are. */
export const historyRights = (login: string): readonly string[] => [
  `ALTER ROLE ${login} REPLICATION`,
  `GRANT EXECUTE ON FUNCTION pg_backup_start(text, boolean), pg_backup_stop(boolean) TO ${login}`,
];

export async function hasHistoryRights(connection: {
  readonly path: string;
  readonly username: string;
  readonly password: string;
}): Promise<boolean> {
  const sql = postgres({ ...connection, database: 'postgres', max: 1, fetch_types: false, onnotice: () => undefined });
  try {
    const [found] = await sql<{ has: boolean }[]>`
      SELECT rolreplication AND has_function_privilege('pg_backup_start(text, boolean)', 'EXECUTE') AS has
      FROM pg_roles WHERE rolname = current_user`;
    return found?.has === true;
  } finally {
    await sql.end({ timeout: 5 });
  }
}

/** Call it while the database is stopped. */
export async function grantHistoryRights(spec: ScratchSpec, login: string): Promise<void> {
  const server = await startScratchServer(spec);
  const sql = server.connect('postgres', 'postgres');
  try {
    for (const statement of historyRights(login)) await sql.unsafe(statement);
  } finally {
    await sql.end({ timeout: 5 });
    await server.stop();
  }
}
