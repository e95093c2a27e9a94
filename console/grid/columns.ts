/** The columns of a grid and where they stand: pinned ones first, each with its width. */
import { type Field, kindOf, type TypeNames, typeName, type ValueKind } from './types.ts';
import type { Row } from './values.ts';

export interface Column {
  /** Its place in the result. */
  readonly index: number;
  readonly name: string;
  readonly typeName: string;
  readonly kind: ValueKind;
  readonly width: number;
  readonly isPinned: boolean;
  /** From the left edge of the grid. */
  readonly left: number;
}

export interface Layout {
  /** Of the column with the numbers of the rows; 0 without one. */
  readonly numbersWidth: number;
  /** As shown, from left to right; the pinned ones first. */
  readonly columns: readonly Column[];
  readonly pinnedCount: number;
  /** Numbers and pinned columns: what does not scroll. */
  readonly fixedWidth: number;
  readonly width: number;
}

export interface LayoutInput {
  readonly fields: readonly Field[];
  readonly names: TypeNames;
  readonly widths: readonly number[];
  readonly pinned: ReadonlySet<number>;
  readonly numbersWidth: number;
}

export function layOut({ fields, names, widths, pinned, numbersWidth }: LayoutInput): Layout {
  const places = [...fields.keys()];
  const order = [...places.filter((at) => pinned.has(at)), ...places.filter((at) => !pinned.has(at))];
  let left = numbersWidth;
  let fixedWidth = numbersWidth;
  const columns = order.flatMap((index): Column[] => {
    const field = fields[index];
    if (field === undefined) return [];
    const width = widths[index] ?? widthMin;
    const isPinned = pinned.has(index);
    const kind = kindOf(field.dataTypeID, names);
    const column = { index, name: field.name, typeName: typeName(field, names), kind, width, isPinned, left };
    left += width;
    if (isPinned) fixedWidth = left;
    return [column];
  });
  return { numbersWidth, columns, pinnedCount: pinned.size, fixedWidth, width: left };
}

export const widthMin = 56;
const widthMax = 2_000;
/** What a column gets at first: enough for most values, and for a look at long ones. */
const firstWidthMax = 320;
/** Of the grid's own type, with its padding, and room for what stands in the head beside the name. */
const letterWidth = 7.6;
const padding = 22;
const headRoom = 26;
const rowsLooked = 60;

export const clampWidth = (width: number) => Math.round(Math.max(widthMin, Math.min(widthMax, width)));

/** By the head and the first rows. */
export function firstWidths(fields: readonly Field[], rows: readonly Row[], names: TypeNames): number[] {
  return fields.map((_, at) => Math.min(firstWidthMax, fittingWidth(fields, rows, at, names)));
}

/** So that everything is seen, as far as the first rows tell. */
export function fittingWidth(fields: readonly Field[], rows: readonly Row[], at: number, names: TypeNames): number {
  const field = fields[at];
  if (field === undefined) return widthMin;
  const head = (field.name.length + typeName(field, names).length + 1) * letterWidth + headRoom;
  const longest = rows.slice(0, rowsLooked).reduce((most, row) => Math.max(most, row[at]?.length ?? 4), 0);
  return clampWidth(Math.max(head, longest * letterWidth) + padding);
}

export const numbersWidthOf = (rows: number) => Math.round(20 + Math.max(3, String(rows).length) * letterWidth);
