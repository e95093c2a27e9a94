/**
 * The rows of one statement as a file, however many there are: sent while the server still produces them, so that
 * neither side holds them all. The statement runs in a transaction that may not write, because people export what
 * they have seen already, and running it a second time must change nothing.
 */
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { CatnapError } from '../../lib/errors.ts';
import { PeerGone } from '../protocol/message-stream.ts';
import { FieldReader, ProtocolError } from '../protocol/wire.ts';
import {
  encodeStatement,
  fieldJson,
  readErrorFields,
  readNext,
  refuseRows,
  runCommand,
  type ServerSession,
  StatementFailed,
  UnfitStatement,
} from './execute.ts';
import type { SqlBody, SqlStatement } from './request.ts';
import { type ColumnFacts, readColumns } from './row-description.ts';
import { jsonOfValue } from './values.ts';

export const exportPath = '/sql/export';

/** `lines` is for programs: the fields as `/sql` describes them, then each row as an array of texts. */
const formats = {
  csv: { mediaType: 'text/csv; charset=utf-8', ending: 'csv' },
  json: { mediaType: 'application/json', ending: 'json' },
  lines: { mediaType: 'application/x-ndjson', ending: 'jsonl' },
} as const;
export type ExportFormat = keyof typeof formats;

/** Null for a request that asks for no file. */
export function readExportFormat(address: string): ExportFormat | null {
  const [path, search = ''] = address.split('?', 2);
  if (path !== exportPath) return null;
  const format = new URLSearchParams(search).get('format') ?? 'csv';
  if (format === 'csv' || format === 'json' || format === 'lines') return format;
  throw new CatnapError('invalid_request', `invalid format; allowed: ${Object.keys(formats).join(', ')}`);
}

export function singleStatement(body: SqlBody): SqlStatement {
  if (body.kind === 'single') return body.statement;
  throw new CatnapError('invalid_request', 'only a single `query` can be exported, not `queries`');
}

export async function exportRows(
  server: ServerSession,
  statement: SqlStatement,
  file: RowFile,
  rowBytesMax: number,
): Promise<void> {
  await runCommand(server, 'BEGIN READ ONLY');
  server.send(encodeStatement(statement));
  let failure: Error | null = null;
  for (;;) {
    const { type, body } = await readNext(server, rowBytesMax).catch((thrown) => {
      throw failure ?? thrown;
    });
    if (type === 'E') failure = new StatementFailed(readErrorFields(body));
    else if (type === 'G') refuseRows(server);
    else if (type === 'H') failure = new UnfitStatement('COPY TO STDOUT is not possible over HTTP');
    else if (type === 'T') file.begin(readColumns(body));
    else if (type === 'D') await file.add(body);
    else if (type === 'Z') break;
  }
  if (failure === null && !file.hasBegun) failure = new UnfitStatement('the statement returns no rows');
  await runCommand(server, 'ROLLBACK');
  if (failure !== null) throw failure;
  await file.end();
}

interface RowFileOptions {
  readonly response: ServerResponse;
  readonly format: ExportFormat;
  /** A caller that reads nothing for so long is taken for gone. */
  readonly fetchMs: number;
  readonly onSent: (bytes: number) => void;
}

/** Rows are sent in pieces of about this many characters. */
const pieceLength = 65_536;

/** Writes rows into a reply, no faster than the caller reads. */
export class RowFile {
  readonly #options: RowFileOptions;
  #columns: readonly ColumnFacts[] | null = null;
  #names: readonly string[] = [];
  #piece = '';
  #isFirst = true;

  constructor(options: RowFileOptions) {
    this.#options = options;
  }

  get hasBegun(): boolean {
    return this.#columns !== null;
  }

  begin(columns: readonly ColumnFacts[]): void {
    this.#columns = columns;
    const { format } = this.#options;
    const names = columns.map(({ name }) => name);
    this.#names = uniqueNames(names).map((name) => JSON.stringify(name));
    if (format === 'csv') this.#piece = `${names.map(csvText).join(',')}\r\n`;
    else if (format === 'json') this.#piece = '[';
    else this.#piece = `[${columns.map(fieldJson).join(',')}]\n`;
  }

  async add(dataRow: Buffer): Promise<void> {
    const { format } = this.#options;
    if (format === 'csv') this.#piece += `${this.#values(dataRow, csvValue).join(',')}\r\n`;
    else if (format === 'json') this.#piece += this.#object(dataRow);
    else this.#piece += `[${this.#values(dataRow, (text) => JSON.stringify(text)).join(',')}]\n`;
    this.#isFirst = false;
    if (this.#piece.length >= pieceLength) await this.#send();
  }

  async end(): Promise<void> {
    if (this.#options.format === 'json') this.#piece += this.#isFirst ? ']\n' : '\n]\n';
    await this.#send();
    this.#options.response.end();
  }

  #object(dataRow: Buffer): string {
    const values = this.#values(dataRow, (text, { typeId }) => (text === null ? 'null' : jsonOfValue(text, typeId)));
    const pairs = values.map((value, at) => `${this.#names[at]}:${value}`);
    return `${this.#isFirst ? '\n' : ',\n'}{${pairs.join(',')}}`;
  }

  #values(dataRow: Buffer, write: (text: string | null, column: ColumnFacts) => string): string[] {
    const reader = new FieldReader(dataRow);
    const columns = this.#columns ?? [];
    if (reader.bytes(2).readUInt16BE(0) !== columns.length) {
      throw new ProtocolError('a row does not fit its description');
    }
    return columns.map((column) => {
      const length = reader.int32();
      return write(length === -1 ? null : reader.bytes(length).toString('utf8'), column);
    });
  }

  async #send(): Promise<void> {
    const { response, format, fetchMs, onSent } = this.#options;
    // With the first piece: a statement that fails before it gets a reply that says why.
    if (!response.headersSent) {
      response.writeHead(200, {
        'content-type': formats[format].mediaType,
        'content-disposition': `attachment; filename="rows.${formats[format].ending}"`,
      });
    }
    const bytes = Buffer.from(this.#piece);
    this.#piece = '';
    onSent(bytes.length);
    if (response.write(bytes)) return;
    const patience = new AbortController();
    const timer = setTimeout(() => patience.abort(), fetchMs);
    const leave = () => patience.abort();
    response.once('close', leave);
    try {
      if (response.destroyed) leave();
      await once(response, 'drain', { signal: patience.signal });
    } catch (thrown) {
      throw new PeerGone(thrown);
    } finally {
      clearTimeout(timer);
      response.off('close', leave);
    }
  }
}

/** As `COPY … WITH (FORMAT csv)` writes it: NULL is nothing, and an empty text is quoted. */
const csvValue = (text: string | null) => (text === null ? '' : csvText(text));

const csvText = (text: string) => (text === '' || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

/** Two columns may have one name, but an object has each name once. */
function uniqueNames(names: readonly string[]): string[] {
  const seen = new Map<string, number>();
  return names.map((name) => {
    const times = (seen.get(name) ?? 0) + 1;
    seen.set(name, times);
    return times === 1 ? name : `${name}_${times}`;
  });
}
