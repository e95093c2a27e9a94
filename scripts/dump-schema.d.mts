import type { Sql } from '../src/db/client.ts';

export const tablesOfRooms: Readonly<Record<'db' | 'auth-provider', string>>;
export function dumpSchema(sql: Sql, room: string): Promise<string>;
