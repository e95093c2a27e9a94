/**
 * The record of a copy, in a schema of the target that goes away with its end. What is done and that it is done are
 * written in one transaction.
 */
import { lsnBytes } from '../lib/moments.ts';
import type { Session, Sql } from './session.ts';

export const recordSchema = 'catnap_import';

export interface JobRecord {
  readonly sourceId: string;
  readonly sourceName: string;
  readonly notes: readonly string[];
  /** Of the slot and of the publication in the source; null where its changes are not followed. */
  readonly slot: string | null;
  /** Whether the target has all changes, and the slot is not needed any more. */
  readonly isFollowed: boolean;
  /** Of a copy that is finished and whose record is kept: what it had to say. Null before. */
  readonly report: FinishedCopy | null;
}

export interface FinishedCopy {
  readonly tables: number;
  readonly rows: number;
  readonly bytes: number;
  readonly notes: readonly string[];
}

export interface TableRecord {
  readonly id: number;
  /** Quoted, with its schema. */
  readonly name: string;
  /** Quoted; none that is generated. */
  readonly columns: readonly string[];
  readonly bytes: number;
}

/** In this order: `views` are filled, `rules` are foreign keys, triggers and policies. */
export const stages = ['indexes', 'views', 'rules', 'owners'] as const;
export type Stage = (typeof stages)[number];

export interface StepRecord {
  readonly id: number;
  readonly kind: string;
  readonly name: string;
  readonly text: string;
}

export async function hasJob(sql: Sql | Session): Promise<boolean> {
  const [row] = await sql`SELECT pg_catalog.to_regclass(${`${recordSchema}.job`}) IS NOT NULL AS "isThere"`;
  return row?.isThere === true;
}

export async function readJob(sql: Sql): Promise<JobRecord | null> {
  if (!(await hasJob(sql))) return null;
  // A copy that an older Catnap began has no column for a report.
  const [row] = await sql<(Omit<JobRecord, 'notes' | 'report'> & { notes: string; report: string | null })[]>`
    SELECT source_id AS "sourceId", source_name AS "sourceName", notes, slot, is_followed AS "isFollowed",
           to_jsonb(j) ->> 'report' AS report
      FROM catnap_import.job j`;
  if (row === undefined) return null;
  return { ...row, notes: JSON.parse(row.notes), report: row.report === null ? null : JSON.parse(row.report) };
}

export async function createRecord(tx: Session, job: JobRecord): Promise<void> {
  await tx.unsafe(`
    CREATE SCHEMA catnap_import;
    CREATE TABLE catnap_import.job (source_id text, source_name text, notes text, slot text,
      is_followed bool DEFAULT false, applied text DEFAULT '0/0', report text);
    CREATE TABLE catnap_import.tables (id int PRIMARY KEY, name text, columns text, bytes bigint,
      is_copied bool DEFAULT false, copied_at text, copied_rows bigint DEFAULT 0, copied_bytes bigint DEFAULT 0);
    CREATE TABLE catnap_import.steps (id int PRIMARY KEY, stage text, kind text, name text, text text,
      is_done bool DEFAULT false)`);
  await tx`INSERT INTO catnap_import.job
    VALUES (${job.sourceId}, ${job.sourceName}, ${JSON.stringify(job.notes)}, ${job.slot})`;
}

export const addTable = (tx: Session, { id, name, columns, bytes }: TableRecord) =>
  tx`INSERT INTO catnap_import.tables VALUES (${id}, ${name}, ${JSON.stringify(columns)}, ${bytes})`;

export const addStep = (tx: Session, stage: Stage, { id, kind, name, text }: StepRecord) =>
  tx`INSERT INTO catnap_import.steps VALUES (${id}, ${stage}, ${kind}, ${name}, ${text})`;

export async function readTables(sql: Sql): Promise<readonly (TableRecord & { isCopied: boolean; copied: number })[]> {
  const rows = await sql<{ id: number; name: string; columns: string; bytes: string; is: boolean; copied: string }[]>`
    SELECT id, name, columns, bytes, is_copied AS "is", copied_bytes AS copied FROM catnap_import.tables ORDER BY id`;
  return rows.map(({ id, name, columns, bytes, is, copied }) => ({
    id,
    name,
    columns: JSON.parse(columns),
    bytes: Number(bytes),
    isCopied: is,
    copied: Number(copied),
  }));
}

export interface Copied {
  readonly rows: number;
  readonly bytes: number;
  readonly at: string | null;
}

export const markCopied = (tx: Session, id: number, { rows, bytes, at }: Copied) =>
  tx`UPDATE catnap_import.tables
        SET is_copied = true, copied_rows = ${rows}, copied_bytes = ${bytes}, copied_at = ${at} WHERE id = ${id}`;

/** By name: from where on in the log changes are missing in each table. */
export async function readCopiedAt(sql: Sql): Promise<ReadonlyMap<string, bigint>> {
  const rows = await sql<{ name: string; at: string | null }[]>`
    SELECT name, copied_at AS at FROM catnap_import.tables WHERE is_copied`;
  return new Map(rows.map(({ name, at }) => [name, lsnBytes(at ?? '0/0')]));
}

export async function readApplied(sql: Sql): Promise<string> {
  const [row] = await sql<{ applied: string }[]>`SELECT applied FROM catnap_import.job`;
  return row?.applied ?? '0/0';
}

export const writeApplied = (tx: Session, lsn: string) => tx`UPDATE catnap_import.job SET applied = ${lsn}`;

export const markFollowed = (sql: Sql) => sql`UPDATE catnap_import.job SET is_followed = true`;

export const writeReport = (tx: Session, report: FinishedCopy) =>
  tx`UPDATE catnap_import.job SET report = ${JSON.stringify(report)}`;

export const dropRecord = (sql: Sql | Session) => sql.unsafe(`DROP SCHEMA IF EXISTS ${recordSchema} CASCADE`);

export const readSteps = (sql: Sql | Session, stage: Stage): Promise<readonly (StepRecord & { isDone: boolean })[]> =>
  sql<(StepRecord & { isDone: boolean })[]>`
    SELECT id, kind, name, text, is_done AS "isDone" FROM catnap_import.steps WHERE stage = ${stage} ORDER BY id`;

export const markStep = (tx: Session, id: number) => tx`UPDATE catnap_import.steps SET is_done = true WHERE id = ${id}`;

export async function readTotals(sql: Session): Promise<{ tables: number; rows: number; bytes: number }> {
  const [row] = await sql<{ tables: string; rows: string; bytes: string }[]>`
    SELECT count(*) AS tables, coalesce(sum(copied_rows), 0) AS rows, coalesce(sum(copied_bytes), 0) AS bytes
      FROM catnap_import.tables`;
  return { tables: Number(row?.tables), rows: Number(row?.rows), bytes: Number(row?.bytes) };
}
