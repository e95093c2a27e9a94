/** Cells as text for other programs: tab-separated text, CSV, JSON, and SQL that inserts them. */
import { elementKind, type Field, kindOf, type ValueKind } from './types.ts';
import { displayText, type Nested, parseArray, type Row, type Value } from './values.ts';

export const formats = ['text', 'csv', 'json', 'sql'] as const;
export type Format = (typeof formats)[number];

export const formatNames: Readonly<Record<Format, string>> = { text: 'text', csv: 'CSV', json: 'JSON', sql: 'SQL' };

/** A part of a result, or all of it: the columns in their order, and in each row a value for each. */
export interface Cells {
  readonly fields: readonly Field[];
  readonly rows: readonly Row[];
  /** A quoted name for the statements that insert the rows. */
  readonly table: string;
}

export function writeCells(cells: Cells, format: Format): string {
  switch (format) {
    case 'text':
      return toText(cells);
    case 'csv':
      return toCsv(cells);
    case 'json':
      return toJson(cells);
    case 'sql':
      return toSql(cells);
  }
}

/** As spreadsheets take it. One cell alone is its value and nothing else. */
function toText({ fields, rows }: Cells): string {
  const [first] = rows;
  if (rows.length === 1 && fields.length === 1) return shown(first?.[0] ?? null, fields[0]);
  const quoted = (text: string) => (/[\t\n\r"]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  return rows.map((row) => row.map((value, at) => quoted(shown(value, fields[at]))).join('\t')).join('\n');
}

const shown = (value: Value, field: Field | undefined) =>
  value === null ? '' : displayText(value, kindOf(field?.dataTypeID ?? 0));

/** As `COPY … WITH (FORMAT csv, HEADER)` writes it: NULL is nothing, and an empty text is quoted. */
function toCsv({ fields, rows }: Cells): string {
  const head = fields.map(({ name }) => csvText(name)).join(',');
  const lines = rows.map((row) => row.map((value) => (value === null ? '' : csvText(value))).join(','));
  return `${[head, ...lines].join('\r\n')}\r\n`;
}

const csvText = (text: string) => (text === '' || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

function toJson({ fields, rows }: Cells): string {
  const names = uniqueNames(fields);
  const kinds = fields.map(({ dataTypeID }) => kindOf(dataTypeID));
  const objects = rows.map((row) => {
    const pairs = row.map((value, at) => {
      const json = jsonOf(value, kinds[at] ?? 'text', fields[at]?.dataTypeID ?? 0);
      return `${JSON.stringify(names[at])}: ${json}`;
    });
    return `  {${pairs.join(', ')}}`;
  });
  return `[\n${objects.join(',\n')}\n]\n`;
}

/** Two columns may have one name, but an object has each name once. */
function uniqueNames(fields: readonly Field[]): string[] {
  const seen = new Map<string, number>();
  return fields.map(({ name }) => {
    const times = (seen.get(name) ?? 0) + 1;
    seen.set(name, times);
    return times === 1 ? name : `${name}_${times}`;
  });
}

function jsonOf(value: Value, kind: ValueKind, typeId: number): string {
  if (value === null) return 'null';
  if (kind === 'boolean') return displayText(value, kind);
  // Digit by digit, whatever their number; NaN and Infinity are no JSON.
  if (kind === 'number') return isJsonNumber(value) ? value : JSON.stringify(value);
  if (kind === 'json') return value;
  const items = kind === 'array' ? parseArray(value) : null;
  return items === null ? JSON.stringify(value) : jsonOfItems(items, elementKind(typeId));
}

const isJsonNumber = (text: string) => /^-?(0|[1-9]\d*)(\.\d+)?(e[+-]?\d+)?$/i.test(text);

function jsonOfItems(items: readonly Nested[], kind: ValueKind): string {
  const parts = items.map((item) =>
    typeof item === 'string' || item === null ? jsonOf(item, kind, 0) : jsonOfItems(item, kind),
  );
  return `[${parts.join(', ')}]`;
}

/** Rows in one statement; a server takes longer and longer for one that is larger. */
const rowsPerInsert = 500;

function toSql({ fields, rows, table }: Cells): string {
  const columns = fields.map(({ name }) => quoteName(name)).join(', ');
  const kinds = fields.map(({ dataTypeID }) => kindOf(dataTypeID));
  const lines = rows.map((row) => `  (${row.map((value, at) => literal(value, kinds[at] ?? 'text')).join(', ')})`);
  const statements: string[] = [];
  for (let at = 0; at < lines.length; at += rowsPerInsert) {
    const values = lines.slice(at, at + rowsPerInsert).join(',\n');
    statements.push(`insert into ${table} (${columns}) values\n${values};\n`);
  }
  return statements.join('');
}

/** A constant of SQL. Postgres finds the type of a quoted one from where it stands. */
export function literal(value: Value, kind: ValueKind): string {
  if (value === null) return 'null';
  if (kind === 'number' && isJsonNumber(value)) return value;
  if (kind === 'boolean' && /^(t|f|true|false)$/.test(value)) return displayText(value, kind);
  return quoteText(value);
}

/** A backslash means itself only with a setting that is not ours to choose. */
const quoteText = (text: string) =>
  text.includes('\\') ? `E'${text.replaceAll('\\', '\\\\').replaceAll("'", "''")}'` : `'${text.replaceAll("'", "''")}'`;

export const quoteName = (name: string) => `"${name.replaceAll('"', '""')}"`;
