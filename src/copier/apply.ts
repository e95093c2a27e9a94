/** Repeats changes of the source in the target, in a transaction of the caller. Values travel as text, with a cast. */
import { quoteIdentifier } from '../compute/server/sql-text.ts';
import { CopyFailure } from './failure.ts';
import type { Message, Relation, Value } from './pgoutput.ts';
import type { Session } from './session.ts';

interface Column {
  readonly name: string;
  readonly type: string;
  readonly isKey: boolean;
  /** Takes a value when a row is made, and none afterwards. */
  readonly isFixed: boolean;
}

interface Table {
  /** Quoted where that is needed, with its schema, as in the record. */
  readonly name: string;
  readonly columns: readonly Column[];
}

export type Change = Extract<Message, { kind: 'insert' | 'update' | 'delete' | 'truncate' }>;

export class Applier {
  readonly #tables = new Map<number, Table>();

  async learn(session: Session, relation: Relation): Promise<void> {
    const [named] = await session<{ name: string }[]>`
      SELECT format('%I.%I', ${relation.schema}::text, ${relation.name}::text) AS name`;
    const name = named?.name ?? '';
    const rows = await session<{ name: string; type: string; isFixed: boolean }[]>`
      SELECT attname AS name, pg_catalog.format_type(atttypid, atttypmod) AS type, attidentity = 'a' AS "isFixed"
        FROM pg_catalog.pg_attribute
       WHERE attrelid = to_regclass(${name}) AND attnum > 0 AND NOT attisdropped`;
    const found = new Map(rows.map((row) => [row.name, row]));
    const columns = relation.columns.map(({ name: column, isKey }) => {
      const there = found.get(column);
      if (there !== undefined) return { ...there, isKey };
      throw new CopyFailure(`${name} has a new column ${column} in the source: changes of the schema are not followed`);
    });
    this.#tables.set(relation.id, { name, columns });
  }

  async apply(session: Session, change: Change, isWanted: (name: string) => boolean): Promise<void> {
    if (change.kind === 'truncate') {
      const names = change.relationIds.map((id) => this.#table(id).name).filter(isWanted);
      if (names.length > 0) await session.unsafe(`TRUNCATE ${names.join(', ')}`);
      return;
    }
    const table = this.#table(change.relationId);
    if (!isWanted(table.name)) return;
    const { text, values } = statementFor(table, change);
    const { count } = await session.unsafe(text, values);
    if (count === 1) return;
    throw new CopyFailure(`a row of ${table.name} that the source has changed is not in the target (${change.kind})`);
  }

  #table(id: number): Table {
    const table = this.#tables.get(id);
    if (table === undefined) throw new CopyFailure(`the source sends changes of table ${id} without its name`);
    return table;
  }
}

function statementFor({ name, columns }: Table, change: Exclude<Change, { kind: 'truncate' }>) {
  const values: (string | null)[] = [];
  const place = ({ type }: Column, value: Value) => {
    values.push(value ?? null);
    return `$${values.length}::text::${type}`;
  };
  const paired = (row: readonly Value[]) => columns.map((column, at) => ({ column, value: row[at] }));
  const where = (row: readonly Value[]) =>
    paired(row)
      .filter(({ column }) => column.isKey)
      .map(({ column, value }) => `${quoteIdentifier(column.name)} = ${place(column, value)}`)
      .join(' AND ');
  if (change.kind === 'delete') return { text: `DELETE FROM ONLY ${name} WHERE ${where(change.key)}`, values };
  if (change.kind === 'insert') {
    const list = columns.map((column) => quoteIdentifier(column.name)).join(', ');
    const given = paired(change.row).map(({ column, value }) => place(column, value));
    return { text: `INSERT INTO ${name} (${list}) OVERRIDING SYSTEM VALUE VALUES (${given.join(', ')})`, values };
  }
  const set = paired(change.row)
    .filter(({ column, value }) => value !== undefined && !column.isFixed)
    .map(({ column, value }) => `${quoteIdentifier(column.name)} = ${place(column, value)}`);
  const key = where(change.key ?? change.row);
  // Nothing but a key that cannot change: the row is only looked for.
  if (set.length === 0) return { text: `SELECT FROM ONLY ${name} WHERE ${key}`, values };
  return { text: `UPDATE ONLY ${name} SET ${set.join(', ')} WHERE ${key}`, values };
}
