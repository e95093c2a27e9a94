/** Changes to the rows of a table that are not made yet, and the statements that make them. */
import type { RowState } from '../grid/editing.ts';
import { literal, quoteName } from '../grid/formats.ts';
import type { ValueKind } from '../grid/types.ts';
import type { Row, Value } from '../grid/values.ts';

/** New values by the names of their columns. */
type Values = ReadonlyMap<string, Value>;

interface RowChange {
  /** The values of the primary key before the change. */
  readonly key: readonly string[];
  readonly values: Values;
  readonly isDeleted: boolean;
}

export interface Changes {
  /** By the key of the row, so that they stay with it when other rows come between. */
  readonly rows: ReadonlyMap<string, RowChange>;
  readonly inserted: readonly Values[];
}

export const noChanges: Changes = { rows: new Map(), inserted: [] };

export const countChanges = ({ rows, inserted }: Changes) => rows.size + inserted.length;

export interface TableShape {
  /** Quoted. */
  readonly name: string;
  readonly columns: readonly string[];
  readonly primaryKey: readonly string[];
  readonly kindOf: (column: string) => ValueKind;
}

/** Null for a row without a whole key, which a table with a primary key does not have. */
function keyOf({ columns, primaryKey }: TableShape, row: Row): string[] | null {
  const values = primaryKey.map((name) => row[columns.indexOf(name)] ?? null);
  const whole = values.filter((value) => value !== null);
  return whole.length === 0 || whole.length < primaryKey.length ? null : whole;
}

/** The rows as they will be: with their new values, and the new rows at the end. */
export function withChanges(shape: TableShape, rows: readonly Row[], changes: Changes) {
  const states = new Map<number, RowState>();
  const placeOf = (names: Iterable<string>) => new Set([...names].map((name) => shape.columns.indexOf(name)));
  const changed = rows.map((row, at) => {
    const change = changes.rows.get(JSON.stringify(keyOf(shape, row)));
    if (change === undefined) return row;
    states.set(at, { kind: change.isDeleted ? 'deleted' : 'changed', columns: placeOf(change.values.keys()) });
    return shape.columns.map((name, column) => change.values.get(name) ?? valueAt(row, column, change.values, name));
  });
  const added = changes.inserted.map((values, at) => {
    states.set(rows.length + at, { kind: 'new', columns: placeOf(values.keys()) });
    return shape.columns.map((name) => values.get(name) ?? null);
  });
  return { rows: [...changed, ...added], states };
}

const valueAt = (row: Row, column: number, values: Values, name: string) =>
  values.has(name) ? null : (row[column] ?? null);

/** One cell gets another value. One that gets its old value back is no change. */
export function editCell(
  shape: TableShape,
  rows: readonly Row[],
  changes: Changes,
  edit: { readonly row: number; readonly column: number; readonly value: Value },
): Changes {
  const name = shape.columns[edit.column] ?? '';
  const old = rows[edit.row];
  if (old === undefined) {
    const place = edit.row - rows.length;
    const set = (values: Values, at: number) => (at === place ? new Map(values).set(name, edit.value) : values);
    return { ...changes, inserted: changes.inserted.map(set) };
  }
  return changeRow(shape, old, changes, (change) => {
    const values = new Map(change.values).set(name, edit.value);
    if ((old[edit.column] ?? null) === edit.value) values.delete(name);
    return { ...change, values };
  });
}

/** Deletes rows, or keeps them if all of them were to be deleted; new ones are given up. */
export function toggleRows(
  shape: TableShape,
  rows: readonly Row[],
  changes: Changes,
  places: readonly number[],
): Changes {
  const old = places.map((place) => rows[place]).filter((row) => row !== undefined);
  const isDeleted = (row: Row) => changes.rows.get(JSON.stringify(keyOf(shape, row)))?.isDeleted === true;
  const isKept = old.every(isDeleted);
  const inserted = changes.inserted.filter((_, at) => !places.includes(rows.length + at));
  const start: Changes = { ...changes, inserted };
  return old.reduce((all, row) => changeRow(shape, row, all, (one) => ({ ...one, isDeleted: !isKept })), start);
}

export const addRow = (changes: Changes): Changes => ({ ...changes, inserted: [...changes.inserted, new Map()] });

function changeRow(shape: TableShape, row: Row, changes: Changes, change: (before: RowChange) => RowChange): Changes {
  const key = keyOf(shape, row);
  if (key === null) return changes;
  const id = JSON.stringify(key);
  const next = change(changes.rows.get(id) ?? { key, values: new Map(), isDeleted: false });
  const rows = new Map(changes.rows).set(id, next);
  if (next.values.size === 0 && !next.isDeleted) rows.delete(id);
  return { ...changes, rows };
}

/** Deletions first: a new row may take the key of one that goes. */
export function changesSql(shape: TableShape, { rows, inserted }: Changes): string[] {
  const { name, primaryKey, kindOf } = shape;
  const constant = (column: string, value: Value) => literal(value, kindOf(column));
  const whereOf = ({ key }: RowChange) =>
    primaryKey.map((column, at) => `${quoteName(column)} = ${constant(column, key[at] ?? null)}`).join(' and ');
  const changed = [...rows.values()];
  const deletes = changed
    .filter(({ isDeleted }) => isDeleted)
    .map((row) => `delete from ${name} where ${whereOf(row)}`);
  const updates = changed
    .filter(({ isDeleted }) => !isDeleted)
    .map((row) => {
      const set = [...row.values].map(([column, value]) => `${quoteName(column)} = ${constant(column, value)}`);
      return `update ${name} set ${set.join(', ')} where ${whereOf(row)}`;
    });
  const inserts = inserted.map((values) => {
    if (values.size === 0) return `insert into ${name} default values`;
    const constants = [...values].map(([column, value]) => constant(column, value));
    return `insert into ${name} (${[...values.keys()].map(quoteName).join(', ')}) values (${constants.join(', ')})`;
  });
  return [...deletes, ...updates, ...inserts];
}
