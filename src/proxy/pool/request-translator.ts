/**
 * Turns a pooled client's bytes into what its server gets: the client's names of prepared statements are replaced by
 * the names that the statements have on servers, and a statement is prepared first where the server does not have it.
 * Everything else passes unchanged; a long message passes in the pieces in which it arrives.
 */
import { CatnapError } from '../../lib/errors.ts';
import { ProtocolError } from '../protocol/wire.ts';
import { ChunkEditor, closeMessage, endOfString, parseMessage, withName } from './chunk-editor.ts';
import { deallocatedName, makeStandIn, makeStandInAndSync, parseStandIn, queryStandIn } from './deallocate.ts';
import { headerBytes, requestTypes, statementTarget } from './message-types.ts';
import type { ReplyScanner } from './reply-scanner.ts';
import { hidden, local, requestKind, type StatementChange } from './request-queue.ts';
import type { ClientStatements, NamedStatement, ServerStatements, Statement } from './statements.ts';

/** The server connection, as far as the translation needs it. */
export interface TranslationTarget {
  readonly replies: ReplyScanner;
  readonly statements: ServerStatements;
  /** A new number each time a client gets a server: an unnamed statement lasts for one turn. */
  readonly turn: number;
}

/** As in Postgres, where a message must fit into one palloc chunk. */
const messageBytesMax = 0x3fff_ffff;
/** An incomplete message is kept until it is this long. Then it passes piece by piece, unless it is a Parse. */
const partialBytesMax = 8_192;
/** All statements of a client together; their text is kept for as long as the client has them. */
const statementBytesMax = 16 * 1024 * 1024;
/** No server has a statement of this name, so the server reports that it does not exist. */
const missingName = 'unnamed';
const flushMessage = Buffer.from([requestTypes.flush, 0, 0, 0, 4]);

export class RequestTranslator {
  readonly #statements: ClientStatements;
  #partial: Buffer | null = null;
  /** Bytes that are still to come of a message whose beginning has passed or was dropped. */
  #bodyLeft = 0;
  /** The last Parse of the unnamed statement, kept if the client may bind it in a later transaction. */
  #unnamed: Buffer | null = null;
  #unnamedTurn = -1;
  #isTerminated = false;
  /** The partial chunk begins with a message that waits: see `mustWait`. */
  #isHolding = false;

  constructor(statements: ClientStatements) {
    this.#statements = statements;
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
      if (this.#mustWait(type, chunk.subarray(editor.at, end), target)) {
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

  /**
   * What a Parse under a name, or a DEALLOCATE of one, does depends on whether the client has the name; something
   * under way may take it away: its first Parse may fail or be skipped, DISCARD ALL may succeed. Only the replies tell,
   * so the message waits for them. During a COPY it does not: it is what ends the COPY, with an error.
   */
  #mustWait(type: number, message: Buffer, { replies }: TranslationTarget): boolean {
    if ((type !== requestTypes.parse && type !== requestTypes.query) || !replies.isReplyDue) return false;
    if (replies.isReadingCopy) return false;
    const nameEnd = type === requestTypes.parse ? endOfString(message, headerBytes) : headerBytes - 1;
    const name =
      nameEnd > headerBytes
        ? message.toString('latin1', headerBytes, nameEnd)
        : deallocatedName(message, nameEnd + 1, message.length);
    return name !== null && this.#statements.find(name) !== undefined;
  }

  /** The current message of the editor, up to `end`: its own end, or the end of the chunk if the message is longer. */
  #pass(type: number, editor: ChunkEditor, end: number, target: TranslationTarget): void {
    const { replies } = target;
    switch (type) {
      case requestTypes.parse:
        return void this.#parse(editor, end, target);
      case requestTypes.bind:
        return void this.#bind(editor, end, target);
      case requestTypes.describe:
        return void this.#describe(editor, end, target);
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
      case requestTypes.copyData:
      case requestTypes.flush:
        return;
      case requestTypes.terminate:
        this.#isTerminated = true;
        return void editor.replace(null, end - editor.at);
      default:
        throw new ProtocolError(`invalid frontend message type ${type}`);
    }
  }

  #query(editor: ChunkEditor, end: number, target: TranslationTarget): void {
    // As in Postgres, a simple query drops the unnamed statement.
    this.#unnamed = null;
    this.#unnamedTurn = -1;
    const change = this.#deallocate(editor.chunk, editor.at + headerBytes, end);
    if (change !== null) {
      const { isInBatch } = target.replies;
      expectStandIn(target.replies);
      // In a batch the Sync would be one too many: if a request before it has failed, the server skips the query too.
      if (!isInBatch) target.replies.expect(requestKind.sync | hidden);
      editor.insert(isInBatch ? makeStandIn : makeStandInAndSync);
      editor.replace(queryStandIn, end - editor.at);
    }
    target.replies.expect(requestKind.query, change);
  }

  /** Drops the statement that the text deallocates. Null when the text does something else. */
  #deallocate(chunk: Buffer, textStart: number, end: number): StatementChange | null {
    const name = deallocatedName(chunk, textStart, end);
    const named = name === null ? undefined : this.#statements.find(name);
    if (name === null || named === undefined) return null;
    this.#statements.remove(name);
    return { undo: () => this.#statements.restore(name, named) };
  }

  #parse(editor: ChunkEditor, end: number, target: TranslationTarget): void {
    const { replies } = target;
    const message = editor.chunk.subarray(editor.at, end);
    const nameEnd = endOfString(message, headerBytes);
    if (nameEnd === headerBytes) {
      const change = this.#deallocate(message, nameEnd + 1, message.length);
      if (change !== null) {
        expectStandIn(replies);
        replies.expect(requestKind.parse, change);
        editor.insert(makeStandIn);
        this.#unnamed = null;
        this.#unnamedTurn = target.turn;
        return void editor.replace(parseStandIn, message.length);
      }
      replies.expect(requestKind.parse);
      // Most drivers send the Bind right behind the Parse. Only others may bind it in a later transaction.
      const next = editor.chunk[end];
      this.#unnamed = next === requestTypes.bind ? null : Buffer.from(message);
      this.#unnamedTurn = target.turn;
      return;
    }
    const name = message.toString('latin1', headerBytes, nameEnd);
    const known = this.#statements.find(name);
    if (known !== undefined) {
      // Postgres refuses a second statement of the same name; sent under the known name, this one is refused too.
      this.#prepare(known, editor, target);
      replies.expect(requestKind.parse);
      return void editor.replace(parseMessage(known.statement), message.length);
    }
    const content = message.subarray(nameEnd + 1);
    if (this.#statements.bytes + content.length > statementBytesMax) throw tooLarge();
    const named = this.#statements.add(name, content);
    // A server that has the text may have prepared it before a column changed its type, so it prepares it again.
    this.#addToServer(named.statement, editor, target);
    replies.expect(requestKind.parse, {
      undo: () => {
        target.statements.remove(named.statement);
        this.#statements.remove(name, named);
      },
    });
    editor.replace(parseMessage(named.statement), message.length);
  }

  #bind(editor: ChunkEditor, end: number, target: TranslationTarget): void {
    const portalEnd = endOfString(editor.chunk, editor.at + headerBytes, end);
    const nameEnd = endOfString(editor.chunk, portalEnd + 1, end);
    this.#rename(editor, portalEnd + 1, nameEnd, target);
    target.replies.expect(requestKind.bind);
  }

  #describe(editor: ChunkEditor, end: number, target: TranslationTarget): void {
    const start = editor.at + headerBytes;
    if (editor.chunk[start] === statementTarget)
      this.#rename(editor, start + 1, endOfString(editor.chunk, start + 1, end), target);
    target.replies.expect(requestKind.describe);
  }

  /** The client's name of the statement goes; the statement stays on the server for other clients. */
  #close(editor: ChunkEditor, end: number, target: TranslationTarget): void {
    const start = editor.at + headerBytes;
    const name = editor.chunk[start] === statementTarget ? editor.chunk.toString('latin1', start + 1, end - 1) : '';
    const named = this.#statements.find(name);
    if (named === undefined) return void target.replies.expect(requestKind.close);
    this.#statements.remove(name);
    target.replies.expect(requestKind.close | local, { undo: () => this.#statements.restore(name, named) });
    editor.replace(null, end - editor.at);
  }

  /** Replaces the statement's name, which lies from `nameStart` to `nameEnd` in the current message. */
  #rename(editor: ChunkEditor, nameStart: number, nameEnd: number, target: TranslationTarget): void {
    if (nameStart === nameEnd) return void this.#provideUnnamed(editor, nameStart, target);
    const named = this.#statements.find(editor.chunk.toString('latin1', nameStart, nameEnd));
    // The client has not prepared it: the server reports that, unless SQL made the statement in this transaction.
    if (named === undefined) return;
    this.#prepare(named, editor, target);
    editor.replace(withName(editor, nameStart, nameEnd, named.statement.name), nameEnd - editor.at);
  }

  /** Makes sure that the server's unnamed statement is the client's own. */
  #provideUnnamed(editor: ChunkEditor, nameStart: number, target: TranslationTarget): void {
    if (this.#unnamedTurn === target.turn) return;
    if (this.#unnamed === null) {
      // The server may hold an unnamed statement of another client, which this client must not use.
      const message = withName(editor, nameStart, nameStart, Buffer.from(missingName));
      return void editor.replace(message, nameStart - editor.at);
    }
    target.replies.expect(requestKind.parse | hidden);
    editor.insert(this.#unnamed);
    this.#unnamedTurn = target.turn;
  }

  /** Prepares the statement on the server, unless the server has it. */
  #prepare(named: NamedStatement, editor: ChunkEditor, target: TranslationTarget): void {
    if (target.statements.has(named)) return;
    const { statement } = named;
    this.#addToServer(statement, editor, target);
    target.replies.expect(requestKind.parse | hidden, { undo: () => target.statements.remove(statement) });
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
      editor.insert(closeMessage(closed));
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
