/** Changes to rows that wait until they are applied. They stay while other pages of the same table are looked at. */
import { useMemo, useState } from 'react';
import type { Editing } from '../grid/editing.ts';
import type { Row } from '../grid/values.ts';
import type { Table } from '../sql/catalog.ts';
import { addRow, changesSql, editCell, noChanges, type TableShape, toggleRows, withChanges } from './changes.ts';
import type { TableFacts } from './table-facts.ts';

interface Edits {
  /** As they will be. */
  readonly rows: readonly Row[];
  readonly editing: Editing | undefined;
  readonly statements: readonly string[];
  /** Undefined where rows cannot be added. */
  readonly insert: (() => void) | undefined;
  readonly discard: () => void;
}

/** Nothing can be edited in what is no table, or is of the past. */
export function useEditing(
  table: Table,
  facts: TableFacts,
  shape: TableShape,
  page: readonly Row[],
  isPast: boolean,
): Edits {
  const [changes, setChanges] = useState(noChanges);
  const isTable = !isPast && (table.kind === 'table' || table.kind === 'partitioned table');
  const hasKey = facts.primary_key.length > 0;
  const made = useMemo(() => withChanges(shape, page, changes), [shape, page, changes]);
  const statements = useMemo(() => changesSql(shape, changes), [shape, changes]);
  const editing: Editing = {
    states: made.states,
    isEditable: (row, column) =>
      // A new row needs no key to be found by.
      (hasKey || row >= page.length) &&
      facts.columns[column]?.generated === false &&
      made.states.get(row)?.kind !== 'deleted',
    onEdit: (row, column, value) => setChanges(editCell(shape, page, changes, { row, column, value })),
    onToggleRows: (rows) => setChanges(toggleRows(shape, page, changes, rows)),
  };
  return {
    rows: made.rows,
    editing: isTable ? editing : undefined,
    statements,
    insert: isTable ? () => setChanges(addRow(changes)) : undefined,
    discard: () => setChanges(noChanges),
  };
}
