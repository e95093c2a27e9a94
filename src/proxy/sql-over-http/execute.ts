/**
 * Runs a statement on a server session and writes its result as JSON text. Extended protocol, text both ways; one
 * statement at a time, so that the first error ends a batch (`batch.ts`).
 */
import { CatnapError } from '../../lib/errors.ts';
import { PeerGone } from '../protocol/message-stream.ts';
import { cstring, encodeMessage, FieldReader, int32, type Message, ProtocolError } from '../protocol/wire.ts';
import type { SqlOptions, SqlStatement } from './request.ts';
import { type ColumnFacts, readColumns } from './row-description.ts';
import { jsonOfValue } from './values.ts';

/** Postgres refused a statement; `fields` are those of its ErrorResponse, by letter. */
export class StatementFailed extends Error {
  readonly fields: ReadonlyMap<string, string>;
  /** Which statement of a batch it was, counted from 0. */
  at: number | null = null;

  constructor(fields: ReadonlyMap<string, string>) {
    super(fields.get('M') ?? '');
    this.name = 'StatementFailed';
    this.fields = fields;
  }
}

export class ResponseTooLarge extends Error {
  constructor(max: number) {
    super(`response is too large (max is ${max} bytes)`);
    this.name = 'ResponseTooLarge';
  }
}

/** A statement that cannot be answered over HTTP, whether it was carried out or not. */
export class UnfitStatement extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'UnfitStatement';
  }
}

/** A session at a server, message by message. */
export interface ServerSession {
  send(messages: Buffer): void;
  /** As `send`, and then the session is reset. */
  sendLast(messages: Buffer): void;
  /** Rejects with a ProtocolError when the message is longer. */
  receive(maxBytes: number): Promise<Message>;
}

/** Counts the bytes that are kept for the reply, over all statements. */
export interface ReplyBytes {
  readonly max: number;
  used: number;
  /** Called for all bytes that are kept; throws when there is no room for them. */
  readonly hold?: (bytes: number) => void;
}

export interface StatementResult {
  readonly json: string;
  /** Of the transaction: I, T or E. */
  readonly status: string;
}

/** For BEGIN, COMMIT and the like: at a commit, deferred triggers may send notices. */
const noticeBytesMax = 10 * 1024 * 1024;

export async function runCommand(server: ServerSession, text: string): Promise<StatementResult> {
  const plain = { rawText: true, arrayMode: true };
  const statement = { query: text, params: [], arrayMode: true, maxRows: 0, details: false };
  return runStatement(server, statement, plain, { max: noticeBytesMax, used: 0 });
}

/** A statement that may be a COPY: its server takes what follows it for the rows. */
const mayCopy = /copy/i;

/** For a request that runs nothing else: the reset of the session goes along with the statement. */
export async function runOnlyStatement(
  server: ServerSession,
  statement: SqlStatement,
  options: Pick<SqlOptions, 'rawText' | 'arrayMode'>,
  replyBytes: ReplyBytes,
): Promise<StatementResult> {
  if (mayCopy.test(statement.query)) return runStatement(server, statement, options, replyBytes);
  server.sendLast(encodeStatement(statement));
  return readResult(server, statement, options, replyBytes);
}

export async function runStatement(
  server: ServerSession,
  statement: SqlStatement,
  options: Pick<SqlOptions, 'rawText' | 'arrayMode'>,
  replyBytes: ReplyBytes,
): Promise<StatementResult> {
  server.send(encodeStatement(statement));
  return readResult(server, statement, options, replyBytes);
}

async function readResult(
  server: ServerSession,
  statement: SqlStatement,
  options: Pick<SqlOptions, 'rawText' | 'arrayMode'>,
  replyBytes: ReplyBytes,
): Promise<StatementResult> {
  const arrayMode = statement.arrayMode ?? options.arrayMode;
  const result = new ResultText({ arrayMode, rawText: options.rawText, details: statement.details }, replyBytes);
  let failure: StatementFailed | null = null;
  let unfit: UnfitStatement | null = null;
  for (;;) {
    const message = await readNext(server, replyBytes.max).catch((thrown) => {
      // A server that ends a session sends the reason before it closes.
      throw failure ?? thrown;
    });
    if (message.type === 'E') failure = new StatementFailed(readErrorFields(message.body));
    else if (message.type === 'G') refuseRows(server);
    else if (message.type === 'H') unfit = new UnfitStatement('COPY TO STDOUT is not possible over HTTP');
    else if (message.type === 'Z') {
      if (failure) throw failure;
      if (unfit) throw unfit;
      return { json: result.finish(), status: message.body.toString('latin1') };
    } else result.take(message);
  }
}

/** For a COPY FROM STDIN. */
export function refuseRows(server: ServerSession): void {
  server.send(encodeMessage('f', cstring('COPY FROM STDIN is not possible over HTTP')));
  // A server that waits for COPY data skips the Sync that came with the statement.
  server.send(sync);
}

/** The bound of one message is the bound of the whole reply. */
export async function readNext(server: ServerSession, bytesMax: number): Promise<Message> {
  try {
    return await server.receive(bytesMax);
  } catch (thrown) {
    if (thrown instanceof ProtocolError) throw new ResponseTooLarge(bytesMax);
    if (!(thrown instanceof PeerGone)) throw thrown;
    throw new CatnapError('unavailable', 'the connection to the compute was lost', { cause: thrown });
  }
}

const sync = encodeMessage('S');

export function encodeStatement({ query, params, maxRows }: SqlStatement): Buffer {
  const values = params.flatMap((text) => {
    if (text === null) return [int32(-1)];
    const bytes = Buffer.from(text);
    return [int32(bytes.length), bytes];
  });
  const unnamed = cstring('');
  return Buffer.concat([
    encodeMessage('P', unnamed, cstring(query), int16(0)),
    encodeMessage('B', unnamed, unnamed, int16(0), int16(params.length), ...values, int16(0)),
    encodeMessage('D', Buffer.from('P'), unnamed),
    encodeMessage('E', unnamed, int32(maxRows)),
    sync,
  ]);
}

function int16(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(2);
  bytes.writeUInt16BE(value);
  return bytes;
}

interface Column {
  /** As a JSON string. */
  readonly name: string;
  readonly typeId: number;
  /** Of several columns with one name the last is shown, as in every driver's objects. */
  readonly isShown: boolean;
}

interface ResultForm extends Pick<SqlOptions, 'rawText' | 'arrayMode'>, Pick<SqlStatement, 'details'> {}

/** Collects the result of one statement. */
class ResultText {
  readonly #form: ResultForm;
  readonly #replyBytes: ReplyBytes;
  readonly #rows: string[] = [];
  readonly #notices: string[] = [];
  #columns: readonly Column[] = [];
  #fields = '';
  #tag = '';
  /** The statement has more rows than were asked for. */
  #hasMore = false;

  constructor(form: ResultForm, replyBytes: ReplyBytes) {
    this.#form = form;
    this.#replyBytes = replyBytes;
  }

  take({ type, body }: Message): void {
    if (type === 'D') this.#rows.push(this.#keep(this.#row(new FieldReader(body))));
    else if (type === 'T') this.#describe(body);
    else if (type === 'C') this.#tag = new FieldReader(body).cstring();
    else if (type === 's') this.#hasMore = true;
    else if (type === 'N' && this.#form.details) this.#notices.push(this.#keep(noticeJson(readErrorFields(body))));
    // Everything else (completions, parameter changes) is not part of the reply.
  }

  finish(): string {
    const words = this.#tag.split(' ');
    const count = words[0] === 'INSERT' ? words[2] : words[1];
    const rowCount = count !== undefined && /^\d+$/.test(count) ? count : 'null';
    return (
      `{"fields":[${this.#fields}],"rows":[${this.#rows.join(',')}],"command":${JSON.stringify(words[0])},` +
      `"rowCount":${rowCount},"rowAsArray":${this.#form.arrayMode}${this.#details()}}`
    );
  }

  /** An addition of ours, for callers that ask for it. */
  #details(): string {
    if (!this.#form.details) return '';
    const tag = JSON.stringify(this.#tag);
    return `,"tag":${tag},"hasMore":${this.#hasMore},"notices":[${this.#notices.join(',')}]`;
  }

  #describe(body: Buffer): void {
    const columns = readColumns(body);
    const lastOf = new Map(columns.map(({ name }, at) => [name, at]));
    this.#columns = columns.map(({ name, typeId }, at) => ({
      name: JSON.stringify(name),
      typeId,
      isShown: lastOf.get(name) === at,
    }));
    this.#fields = this.#keep(columns.map(fieldJson).join(','));
  }

  #row(reader: FieldReader): string {
    const count = reader.bytes(2).readUInt16BE(0);
    if (count !== this.#columns.length) throw new ProtocolError('a row does not fit its description');
    const values: string[] = [];
    const { arrayMode, rawText } = this.#form;
    for (const { name, typeId, isShown } of this.#columns) {
      const length = reader.int32();
      const text = length === -1 ? null : reader.bytes(length).toString('utf8');
      if (!arrayMode && !isShown) continue;
      const json = text === null ? 'null' : rawText ? JSON.stringify(text) : jsonOfValue(text, typeId);
      values.push(arrayMode ? json : `${name}:${json}`);
    }
    return arrayMode ? `[${values.join(',')}]` : `{${values.join(',')}}`;
  }

  #keep(text: string): string {
    const bytes = Buffer.byteLength(text) + 1;
    this.#replyBytes.used += bytes;
    if (this.#replyBytes.used > this.#replyBytes.max) throw new ResponseTooLarge(this.#replyBytes.max);
    this.#replyBytes.hold?.(bytes);
    return text;
  }
}

export function fieldJson({ name, typeId, tableId, columnId, size, modifier }: ColumnFacts): string {
  return (
    `{"name":${JSON.stringify(name)},"dataTypeID":${typeId},"tableID":${tableId},"columnID":${columnId},` +
    `"dataTypeSize":${size},"dataTypeModifier":${modifier},"format":"text"}`
  );
}

function noticeJson(fields: ReadonlyMap<string, string>): string {
  const of = (letter: string) => fields.get(letter) ?? null;
  return JSON.stringify({ severity: of('V'), code: of('C'), message: of('M'), detail: of('D'), hint: of('H') });
}

export function readErrorFields(body: Buffer): ReadonlyMap<string, string> {
  const reader = new FieldReader(body);
  const fields = new Map<string, string>();
  for (let field = reader.byte(); field !== 0; field = reader.byte()) {
    fields.set(String.fromCharCode(field), reader.cstringBytes().toString('utf8'));
  }
  return fields;
}

/** Resets the session, so that nothing of this caller is left for the next one. */
export async function resetSession(server: ServerSession): Promise<void> {
  await runCommand(server, 'DISCARD ALL');
}
