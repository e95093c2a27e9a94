/** What a grid may let people do to its rows, and what they have done so far. */
import type { Value } from './values.ts';

export interface RowState {
  readonly kind: 'new' | 'changed' | 'deleted';
  /** Those that have a value of their own in a new row, or another one than before. */
  readonly columns: ReadonlySet<number>;
}

/** Rows and columns by their places in the result. */
export interface Editing {
  readonly states: ReadonlyMap<number, RowState>;
  readonly isEditable: (row: number, column: number) => boolean;
  readonly onEdit: (row: number, column: number, value: Value) => void;
  /** Deletes rows, or keeps those that were to be deleted. */
  readonly onToggleRows: (rows: readonly number[]) => void;
}

/** Values that name a row of another table. */
export interface Links {
  readonly columns: ReadonlySet<number>;
  readonly labelOf: (column: number, value: string) => string;
  readonly onFollow: (row: number, column: number) => void;
}
