/** Rows in another order, as numbers of rows: the rows themselves stay where they are. */
import type { ValueKind } from './types.ts';
import type { Row } from './values.ts';

export interface Sort {
  readonly column: number;
  readonly isDescending: boolean;
}

/** From nothing to ascending, to descending, and back. */
export function nextSort(sort: Sort | null, column: number): Sort | null {
  if (sort?.column !== column) return { column, isDescending: false };
  return sort.isDescending ? null : { column, isDescending: true };
}

/** NULL is last in ascending order and first in descending, as in Postgres. */
export function sortedRows(rows: readonly Row[], { column, isDescending }: Sort, kind: ValueKind): Uint32Array {
  const order = Uint32Array.from(rows.keys());
  const compare = kind === 'number' || kind === 'moment' ? byNumber(rows, column, kind) : byText(rows, column);
  const sign = isDescending ? -1 : 1;
  return order.sort((a, b) => sign * compare(a, b) || a - b);
}

type Compare = (a: number, b: number) => number;

function byText(rows: readonly Row[], column: number): Compare {
  return (a, b) => {
    const left = rows[a]?.[column] ?? null;
    const right = rows[b]?.[column] ?? null;
    if (left === null || right === null) return Number(left === null) - Number(right === null);
    return left < right ? -1 : left > right ? 1 : 0;
  };
}

/** Read once each. Those that a double cannot tell apart are compared by their digits. */
function byNumber(rows: readonly Row[], column: number, kind: ValueKind): Compare {
  const numbers = Float64Array.from(rows, (row) => numberOf(row[column] ?? null, kind));
  const asText = byText(rows, column);
  return (a, b) => {
    const left = numbers[a] ?? Number.NaN;
    const right = numbers[b] ?? Number.NaN;
    if (Number.isNaN(left) || Number.isNaN(right)) return Number(Number.isNaN(left)) - Number(Number.isNaN(right));
    return left - right || (kind === 'number' ? byDigits(rows, column, a, b) : asText(a, b));
  };
}

function byDigits(rows: readonly Row[], column: number, a: number, b: number): number {
  const left = rows[a]?.[column] ?? '';
  const right = rows[b]?.[column] ?? '';
  if (!/^-?\d{16,}$/.test(left) || !/^-?\d{16,}$/.test(right)) return 0;
  const difference = BigInt(left) - BigInt(right);
  return difference < 0n ? -1 : difference > 0n ? 1 : 0;
}

/** NaN for NULL, which is last. Postgres puts its own NaN behind every number. */
function numberOf(value: string | null, kind: ValueKind): number {
  if (value === null) return Number.NaN;
  if (kind === 'number') return value === 'NaN' ? Number.POSITIVE_INFINITY : Number(value);
  if (value === 'infinity') return Number.POSITIVE_INFINITY;
  if (value === '-infinity') return Number.NEGATIVE_INFINITY;
  const [, date = '', time = '00:00:00', offset = '+00', era] = momentParts.exec(value) ?? [];
  const at = Date.parse(`${date}T${time.slice(0, 12)}${/:/.test(offset) ? offset : `${offset}:00`}`);
  // A year before ours or beyond four digits: by its own number, which keeps such rows together at their end.
  if (Number.isNaN(at) || era !== undefined) return (era === undefined ? 1 : -1) * 1e15 * Number.parseInt(date, 10);
  return at;
}

const momentParts = /^(\d+-\d\d-\d\d)(?: (\d\d:\d\d:\d\d(?:\.\d+)?))?([+-]\d\d(?::\d\d)?)?( BC)?$/;
