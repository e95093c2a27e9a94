import type { Sql } from '../src/db/client.ts';

export function dumpSchema(sql: Sql): Promise<string>;
