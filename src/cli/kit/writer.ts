/** Prints results: aligned tables for people, JSON for programs. A command decides what to print, never how. */
import type { Writable } from 'node:stream';

export const outputFormats = ['table', 'json'] as const;
export type OutputFormat = (typeof outputFormats)[number];

export type Cell = string | number | boolean | null | undefined;

/** Titles by field name, in the order of the columns. */
export type Columns<Row> = Partial<Record<keyof Row & string, string>>;

export interface Writer {
  /** Many things of one kind; prints `empty` when there are none. */
  list<Row extends object>(rows: readonly Row[], columns: Columns<Row>, empty: string): void;
  /** One thing, a line for each field. */
  record<Row extends object>(row: Row, columns: Columns<Row>): void;
  /** A remark for people; not part of the JSON. */
  remark(text: string): void;
}

export function createWriter(
  stream: Writable,
  format: OutputFormat,
  phrase: (remark: string) => string = (remark) => remark,
): Writer {
  const print = (text: string) => void stream.write(`${text}\n`);
  if (format === 'json') {
    const json = (value: object) => print(JSON.stringify(value, null, 2));
    return { list: json, record: json, remark: () => undefined };
  }
  return {
    list: (rows, columns, empty) => print(rows.length === 0 ? empty : renderTable(rows, columns)),
    record: (row, columns) => print(renderRecord(row, columns)),
    remark: (text) => print(phrase(text)),
  };
}

export function renderTable<Row extends object>(rows: readonly Row[], columns: Columns<Row>): string {
  const fields = Object.keys(columns) as (keyof Row & string)[];
  const titles = fields.map((field) => (columns[field] ?? field).toUpperCase());
  return alignColumns([titles, ...rows.map((row) => fields.map((field) => cellText(row[field])))]);
}

export function renderRecord<Row extends object>(row: Row, columns: Columns<Row>): string {
  const fields = (Object.keys(columns) as (keyof Row & string)[]).filter((field) => row[field] !== undefined);
  return alignColumns(fields.map((field) => [`${columns[field] ?? field}:`, cellText(row[field])]));
}

function alignColumns(lines: readonly (readonly string[])[]): string {
  const widths: number[] = [];
  for (const line of lines) {
    for (const [at, cell] of line.entries()) widths[at] = Math.max(widths[at] ?? 0, displayWidth(cell));
  }
  return lines
    .map((line) =>
      line
        .map((cell, at) => pad(cell, widths[at] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** Names may contain any text, including a line break or an escape sequence that would repaint the terminal. */
function cellText(value: unknown): string {
  if (value === null || value === undefined || value === '') return '-';
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  return String(value).replace(/[\u0000-\u001f\u007f-\u009f]/g, '?');
}

const displayWidth = (text: string) => [...text].length;
const pad = (text: string, width: number) => text + ' '.repeat(Math.max(0, width - displayWidth(text)));
