/**
 * Turns a pooled client's bytes into what its server gets: the client's names of prepared statements are replaced by
 * the names that the statements have on servers, and a statement is prepared first where the server does not have it.
 * Everything else passes unchanged; a long message passes in the pieces in which it arrives.
 */
import { isUtf8 } from 'node:buffer';
import { CatnapError } from '../../lib/errors.ts';
import { ProtocolError } from '../protocol/wire.ts';
import { ChunkEditor, closeMessage, parseMessage, withName } from './chunk-editor.ts';
import { makeStandIn, makeStandInAndSync, parseStandIn, queryStandIn, standInName } from './deallocate.ts';
import { headerBytes, namesStatement, requestTypes } from './message-types.ts';
import type { ReplyScanner } from './reply-scanner.ts';
import { hidden, local, requestKind, type StatementChange, StatementUse } from './request-queue.ts';
import { BothChanges, NameAddition, NameRemoval, ServerAddition } from './statement-changes.ts';
import { StatementNames, type TranslatedClient, type TranslationTarget } from './statement-names.ts';
import { type ClientStatements, hasEncoding, type NamedStatement, type Statement } from './statements.ts';
import { UnnamedStatement } from './unnamed-statement.ts';

/** As in Postgres, where a message must fit into one palloc chunk. */
const messageBytesMax = 0x3fff_ffff;
/** An incomplete message is kept until it is this long. Then it passes piece by piece, unless it is a Parse. */
const partialBytesMax = 8_192;
/** All statements of a client together; their text is kept for as long as the client has them. */
const statementBytesMax = 16 * 1024 * 1024;
/** A longer unnamed statement that was bound at once is not kept for a later turn. */
const boundBytesMax = 64 * 1024;
/** No server has a statement of this name, so the server reports that it does not exist. */
const missingName = 'unnamed';
const flushMessage = Buffer.from([requestTypes.flush, 0, 0, 0, 4]);

export class RequestTranslator {
  readonly #statements: ClientStatements;
  readonly #names: StatementNames;
  #partial: Buffer | null = null;
  /** Bytes that are still to come of a message whose beginning has passed or was dropped. */
  #bodyLeft = 0;
  readonly #unnamed = new UnnamedStatement();
  #isTerminated = false;
  /** The partial chunk begins with a message that waits: see `mustWait`. */
  #isHolding = false;

  constructor(statements: ClientStatements, client: TranslatedClient) {
    this.#statements = statements;
    this.#names = new StatementNames(statements, this.#unnamed, client);
  }

  /** The rest of a message will follow, so the server must not go to another client. */
  get isMidMessage(): boolean {
    return this.#bodyLeft > 0 || this.#isHolding;
  }

  /** Bytes that wait until the server has replied to what was sent before them; then `translate` takes them. */
  get heldBytes(): number {
    return this.#isHolding ? (this.#partial?.length ?? 0) : 0;
  }

  /** The client has sent Terminate. */
  get isTerminated(): boolean {
    return this.#isTerminated;
  }

  /** Forgets an incomplete message, for a request that is sent again from its start. */
  rewind(): void {
    this.#partial = null;
    this.#bodyLeft = 0;
    this.#isTerminated = false;
    this.#isHolding = false;
  }

  /** The beginning of a message whose rest has not arrived. */
  get partial(): Buffer | null {
    return this.#partial;
  }

  /** Whether the chunk starts with Terminate, which needs no server. */
  isTerminate(chunk: Buffer): boolean {
    return this.#partial === null && this.#bodyLeft === 0 && chunk[0] === requestTypes.terminate;
  }

  /** For a client without a server: the chunk without the rows of a COPY that has already failed. */
  withoutStrayCopy(chunk: Buffer): Buffer {
    let at = 0;
    if (this.#partial !== null) return chunk;
    while (at < chunk.length) {
      if (this.#bodyLeft > 0) {
        const step = Math.min(this.#bodyLeft, chunk.length - at);
        this.#bodyLeft -= step;
        at += step;
        continue;
      }
      if (!isCopyType(chunk[at] ?? 0) || chunk.length - at < headerBytes) break;
      this.#bodyLeft = Math.max(0, chunk.readUInt32BE(at + 1) - 4);
      at += headerBytes;
    }
    return at === 0 ? chunk : chunk.subarray(at);
  }

  /** Returns what the server gets for these bytes. Throws a ProtocolError for bytes that are not a message. */
  translate(arrived: Buffer, target: TranslationTarget): readonly Buffer[] {
    const chunk = this.#partial === null ? arrived : Buffer.concat([this.#partial, arrived]);
    this.#partial = null;
    const wasHolding = this.#isHolding;
    this.#isHolding = false;
    const editor = new ChunkEditor(chunk);
    while (editor.at < chunk.length && !this.#isTerminated) {
      const left = chunk.length - editor.at;
      if (this.#bodyLeft > 0) {
        const step = Math.min(this.#bodyLeft, left);
        this.#bodyLeft -= step;
        editor.at += step;
        continue;
      }
      if (left < headerBytes) break;
      const type = chunk[editor.at] ?? 0;
      const length = chunk.readUInt32BE(editor.at + 1);
      if (length < 4 || length > messageBytesMax) throw new ProtocolError('invalid message length');
      if (left <= length && (left < partialBytesMax || type === requestTypes.parse)) {
        if (type === requestTypes.parse && length > statementBytesMax) throw tooLarge();
        break;
      }
      const end = Math.min(chunk.length, editor.at + 1 + length);
      if (namesStatement(type)) editor.findName(type, end, end === editor.at + 1 + length);
      if (this.#names.mustWait(type, editor, end, target)) {
        // Without a Flush the server might keep the replies until a Sync, which may be behind this message.
        if (!wasHolding || editor.at > 0) editor.insert(flushMessage);
        this.#isHolding = true;
        break;
      }
      this.#pass(type, editor, end, target);
      this.#bodyLeft = editor.at + 1 + length - end;
      editor.at = end;
    }
    if (editor.at < chunk.length && !this.#isTerminated) this.#partial = Buffer.from(chunk.subarray(editor.at));
    return editor.finish();
  }

  /** The current message of the editor, up to `end`: its own end, or the end of the chunk if the message is longer. */
  #pass(type: number, editor: ChunkEditor, end: number, target: TranslationTarget): void {
    const { replies } = target;
    switch (type) {
      case requestTypes.parse:
        return void this.#parse(editor, end, target);
      case requestTypes.bind:
        return void replies.expect(requestKind.bind, this.#rename(editor, target));
      case requestTypes.describe:
        return void replies.expect(requestKind.describe, this.#rename(editor, target));
      case requestTypes.close:
        return void this.#close(editor, end, target);
      case requestTypes.execute:
        return void replies.expect(requestKind.execute);
      case requestTypes.sync:
        return void replies.expect(requestKind.sync);
      case requestTypes.query:
        return void this.#query(editor, end, target);
      case requestTypes.functionCall:
        return void replies.expect(requestKind.query);
      case requestTypes.copyDone:
      case requestTypes.copyFail:
        return void replies.expect(requestKind.copyEnd);
      case requestTypes.flush:
        // A Flush has no reply; one with a body is refused, as a Describe may be.
        if (end - editor.at > headerBytes) replies.expect(requestKind.describe);
        return;
      case requestTypes.copyData:
        return;
      case requestTypes.terminate:
        this.#isTerminated = true;
        return void editor.replace(null, end - editor.at);
      default:
        throw new ProtocolError(`invalid frontend message type ${type}`);
    }
  }

  #query(editor: ChunkEditor, end: number, { replies }: TranslationTarget): void {
    const change = this.#deallocate(editor, editor.at + headerBytes, end);
    // As in Postgres, a simple query drops the unnamed statement, unless its message cannot be read.
    const isDropped = !this.#unnamed.isNone && this.#isReadable(editor, end);
    const drop = isDropped ? this.#unnamed.drop(replies.batch) : null;
    if (change === null) return void replies.expect(requestKind.query, drop);
    const { isInBatch } = replies;
    expectStandIn(replies);
    // In a batch the Sync would be one too many: if a request before it has failed, the server skips the query too.
    if (!isInBatch) replies.expect(requestKind.sync | hidden);
    editor.insert(isInBatch ? makeStandIn : makeStandInAndSync);
    editor.replace(queryStandIn, end - editor.at);
    replies.expect(requestKind.query, drop === null ? change : new BothChanges(change, drop));
  }

  /** The text of a query ends with its first zero, and the message there. Of a long one only the beginning is here. */
  #isReadable({ chunk, at }: ChunkEditor, end: number): boolean {
    if (end > chunk.length) return true;
    const textStart = at + headerBytes;
    const isText = this.#names.encoding !== 'UTF8' || isUtf8(chunk.subarray(textStart, end));
    return isText && chunk.indexOf(0, textStart) === end - 1;
  }

  /** Drops the statement that the text deallocates. Null when the client has none of that name. */
  #deallocate(editor: ChunkEditor, textStart: number, end: number): StatementChange | null {
    const key = this.#names.deallocatedKey(editor, textStart, end);
    return key === null || this.#statements.find(key) === undefined ? null : new NameRemoval(key, this.#statements);
  }

  #parse(editor: ChunkEditor, end: number, target: TranslationTarget): void {
    const { replies } = target;
    const { chunk, at, nameStart, nameEnd } = editor;
    if (nameStart === -1) return void replies.expect(requestKind.parse);
    if (nameStart === nameEnd) return void this.#parseUnnamed(editor, end, target);
    const key = this.#names.keyAt(editor);
    if (this.#statements.find(key) !== undefined) {
      // Postgres refuses a second statement of the same name, once it has understood the text.
      expectStandIn(replies);
      replies.expect(requestKind.parse, new StatementUse(standInName, chunk.toString('latin1', nameStart, nameEnd)));
      editor.insert(makeStandIn);
      return void editor.replace(withName(editor, standInName), nameEnd - at);
    }
    const content = chunk.subarray(nameEnd + 1, end);
    if (this.#statements.bytes + content.length > statementBytesMax) throw tooLarge();
    if (hasEncoding(key)) {
      // The server would refuse a name that is no text, and does not get this one; a Close lets it look at the name.
      replies.expect(requestKind.close | hidden);
      editor.insert(closeMessage(chunk.subarray(nameStart, nameEnd)));
    }
    const named = this.#statements.add(key, content, this.#names.encoding, replies.batch);
    // A server that has the text may have prepared it before a column changed its type, so it prepares it again.
    this.#addToServer(named.statement, editor, target);
    replies.expect(requestKind.parse, new NameAddition(key, named, this.#statements, target.statements));
    editor.replace(parseMessage(named.statement), end - at);
  }

  #parseUnnamed(editor: ChunkEditor, end: number, { replies, turn }: TranslationTarget): void {
    const { chunk, at, nameEnd } = editor;
    const change = this.#deallocate(editor, nameEnd + 1, end);
    if (change !== null) {
      expectStandIn(replies);
      replies.expect(requestKind.parse, new BothChanges(change, this.#unnamed.parse(null, turn, replies.batch)));
      editor.insert(makeStandIn);
      return void editor.replace(parseStandIn, end - at);
    }
    // Most drivers send the Bind right behind the Parse, and seldom bind it again in a later transaction.
    const isForgotten = chunk[end] === requestTypes.bind && end - at > boundBytesMax;
    const message = isForgotten ? null : Buffer.from(chunk.subarray(at, end));
    replies.expect(requestKind.parse, this.#unnamed.parse(message, turn, replies.batch));
  }

  /** The client's name of the statement goes; the statement stays on the server for other clients. */
  #close(editor: ChunkEditor, end: number, { replies }: TranslationTarget): void {
    const { nameStart, nameEnd } = editor;
    // The server gets this one. A message that goes on behind the name is refused.
    const isUnnamed = nameStart !== -1 && nameStart === nameEnd && nameEnd + 1 === end;
    if (isUnnamed && !this.#unnamed.isNone) {
      return void replies.expect(requestKind.close, this.#unnamed.drop(replies.batch));
    }
    const key = nameStart === -1 ? '' : this.#names.keyAt(editor);
    if (this.#statements.find(key) === undefined) return void replies.expect(requestKind.close);
    replies.expect(requestKind.close | local, new NameRemoval(key, this.#statements));
    editor.replace(null, end - editor.at);
  }

  /** Replaces the name of the statement that a Bind or a Describe uses. Returns what that request carries. */
  #rename(editor: ChunkEditor, target: TranslationTarget): StatementUse | null {
    if (editor.nameStart === -1) return null;
    if (editor.nameStart === editor.nameEnd) {
      this.#provideUnnamed(editor, target);
      return null;
    }
    const named = this.#statements.find(this.#names.keyAt(editor));
    // The client has not prepared it: the server reports that, unless SQL made the statement in this transaction.
    if (named === undefined) return null;
    this.#prepare(named, editor, target);
    editor.replace(withName(editor, named.statement.name), editor.nameEnd - editor.at);
    return named.use;
  }

  /** Makes sure that the server's unnamed statement is the client's own. */
  #provideUnnamed(editor: ChunkEditor, { replies, turn }: TranslationTarget): void {
    if (this.#unnamed.isOn(turn)) return;
    const { message } = this.#unnamed;
    if (message === null) {
      // The server may hold an unnamed statement of another client, which this client must not use.
      return void editor.replace(withName(editor, Buffer.from(missingName)), editor.nameEnd - editor.at);
    }
    replies.expect(requestKind.parse | hidden, this.#unnamed.provide(turn, replies.batch));
    editor.insert(message);
  }

  /** Prepares the statement on the server, unless the server has it. */
  #prepare(named: NamedStatement, editor: ChunkEditor, target: TranslationTarget): void {
    if (target.statements.has(named)) return;
    const { statement, preparedAt } = named;
    this.#addToServer(statement, editor, target);
    const change = new ServerAddition(statement, target.statements, preparedAt);
    target.replies.expect(requestKind.parse | hidden, change);
    editor.insert(parseMessage(statement));
  }

  /**
   * Notes that the server has the statement from now on. Closes what it may have under the same name (nothing fails if
   * there is no such statement), and the statement that has to make room, if any.
   */
  #addToServer(statement: Statement, editor: ChunkEditor, target: TranslationTarget): void {
    const evicted = target.statements.add(statement);
    for (const closed of [evicted, statement.wasSent ? statement : null]) {
      if (closed === null) continue;
      target.replies.expect(requestKind.close | hidden);
      editor.insert(closeMessage(closed.name));
    }
    statement.wasSent = true;
  }
}

function expectStandIn(replies: ReplyScanner): void {
  replies.expect(requestKind.close | hidden);
  replies.expect(requestKind.parse | hidden);
}

function isCopyType(type: number): boolean {
  return type === requestTypes.copyData || type === requestTypes.copyDone || type === requestTypes.copyFail;
}

function tooLarge(): CatnapError {
  return new CatnapError(
    'too_large',
    `prepared statements of a pooled connection hold ${statementBytesMax} bytes of text at most`,
  );
}
