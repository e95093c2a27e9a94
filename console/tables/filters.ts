/** Filters and sorting of a table's rows, and the SQL that they are. */
import { literal, quoteName } from '../grid/formats.ts';
import type { ValueKind } from '../grid/types.ts';

export const operators = ['=', '<>', '<', '<=', '>', '>=', 'contains', 'is null', 'is not null'] as const;
export type Operator = (typeof operators)[number];

export interface Filter {
  readonly column: string;
  readonly operator: Operator;
  /** Without meaning for those that compare with NULL. */
  readonly value: string;
}

export const takesValue = (operator: Operator) => operator !== 'is null' && operator !== 'is not null';

export interface RowsWish {
  readonly filters: readonly Filter[];
  readonly sort: { readonly column: string; readonly isDescending: boolean } | null;
  /** From 1. */
  readonly page: number;
}

export const rowsPerPage = 500;

/** As it stands in the address; what is not understood is left out. */
export function readFilters(given: unknown): readonly Filter[] {
  if (!Array.isArray(given)) return [];
  return given.filter(
    (one: Partial<Filter> | null): one is Filter =>
      typeof one?.column === 'string' &&
      typeof one.value === 'string' &&
      operators.some((name) => name === one.operator),
  );
}

/** A constant has the type of the column that it is compared with. */
export function conditionOf({ column, operator, value }: Filter, kind: ValueKind): string {
  const name = quoteName(column);
  if (!takesValue(operator)) return `${name} ${operator}`;
  if (operator === 'contains') return `${kind === 'text' ? name : `${name}::text`} ilike ${pattern(value)}`;
  return `${name} ${operator} ${literal(value, kind)}`;
}

const pattern = (text: string) => literal(`%${text.replaceAll(/[\\%_]/g, '\\$&')}%`, 'text');

interface Source {
  /** Quoted. */
  readonly name: string;
  readonly kindOf: (column: string) => ValueKind;
  /** Without a sort, rows come in this order, so that pages do not overlap. */
  readonly primaryKey: readonly string[];
}

/** All rows that are wanted, without pages. */
export function rowsSql({ name, kindOf, primaryKey }: Source, { filters, sort }: RowsWish): string {
  return [`select * from ${name}`, whereSql(filters, kindOf), orderSql(sort, primaryKey)]
    .filter((part) => part !== '')
    .join('\n');
}

/** One row more than is shown, to know whether there is a next page. */
export const pageSql = (rows: string, page: number) =>
  `${rows}\nlimit ${rowsPerPage + 1}${page === 1 ? '' : ` offset ${(page - 1) * rowsPerPage}`}`;

export function countSql({ name, kindOf }: Source, filters: readonly Filter[]): string {
  return [`select count(*) from ${name}`, whereSql(filters, kindOf)].filter((part) => part !== '').join('\n');
}

function whereSql(filters: readonly Filter[], kindOf: Source['kindOf']): string {
  const conditions = filters.map((filter) => conditionOf(filter, kindOf(filter.column)));
  return conditions.length === 0 ? '' : `where ${conditions.join('\n  and ')}`;
}

function orderSql(sort: RowsWish['sort'], primaryKey: readonly string[]): string {
  const sorted = sort === null ? [] : [`${quoteName(sort.column)}${sort.isDescending ? ' desc' : ''}`];
  const rest = primaryKey.filter((column) => column !== sort?.column).map(quoteName);
  const all = [...sorted, ...rest];
  return all.length === 0 ? '' : `order by ${all.join(', ')}`;
}
