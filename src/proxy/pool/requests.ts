/**
 * Cuts a pooled client's bytes into messages and passes them to its server, with the names of prepared statements
 * replaced by those that the statement has on servers, and with statements prepared first where the server does not
 * know them. Everything else passes untouched, long messages in the pieces they come in.
 */
import { CatnapError } from '../../lib/errors.ts';
import { ProtocolError } from '../protocol/wire.ts';
import { asked, hidden, local } from './asked.ts';
import type { ReplyScanner } from './replies.ts';
import {
  closeMessage,
  endOfString,
  headerBytes,
  parseMessage,
  Run,
  renamed,
  statementKind,
  types,
} from './request-bytes.ts';
import type { ClientStatements, ServerStatements, Statement } from './statements.ts';

/** The server as the translation sees it. */
export interface TranslationTarget {
  readonly replies: ReplyScanner;
  readonly statements: ServerStatements;
  /** Differs each time a client gets a server: an unnamed statement does not live longer. */
  readonly turn: number;
}

/** As in Postgres: a message is a palloc chunk at most. */
const messageBytesMax = 0x3fff_ffff;
/** An incomplete message is kept until it is this long; then it passes piece by piece, if its kind allows. */
const keptBytesMax = 8_192;
/** A statement is kept for as long as its client has it. */
const statementBytesMax = 16 * 1024 * 1024;
const missingName = 'unnamed';

export class RequestTranslator {
  readonly #statements: ClientStatements;
  #partial: Buffer | null = null;
  /** Bytes of a message whose beginning has passed, or was dropped. */
  #bodyLeft = 0;
  /** The last unnamed Parse, kept if it may be bound in a later transaction. */
  #unnamed: Buffer | null = null;
  #unnamedTurn = -1;
  #isTerminated = false;

  constructor(statements: ClientStatements) {
    this.#statements = statements;
  }

  /** The server must not be given away: the rest of a message will follow. */
  get isMidMessage(): boolean {
    return this.#bodyLeft > 0;
  }

  /** The client has said goodbye. */
  get isTerminated(): boolean {
    return this.#isTerminated;
  }

  /** Forgets the beginning of a message; for a request that is sent again from its start. */
  rewind(): void {
    this.#partial = null;
    this.#bodyLeft = 0;
    this.#isTerminated = false;
  }

  /** The beginning of a message whose rest has not come. */
  get partial(): Buffer | null {
    return this.#partial;
  }

  /** Nothing but a goodbye, which needs no server. */
  isGoodbye(chunk: Buffer): boolean {
    return this.#partial === null && this.#bodyLeft === 0 && chunk[0] === types.terminate;
  }

  /** The bytes less the rows of a COPY that has failed already, for a client that has no server: nobody wants them. */
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
      const type = chunk[at] ?? 0;
      const isCopy = type === types.copyData || type === types.copyDone || type === types.copyFail;
      if (!isCopy || chunk.length - at < headerBytes) break;
      this.#bodyLeft = Math.max(0, chunk.readUInt32BE(at + 1) - 4);
      at += headerBytes;
    }
    return at === 0 ? chunk : chunk.subarray(at);
  }

  /** What the server gets for these bytes. Throws a ProtocolError for what is no message. */
  translate(arrived: Buffer, target: TranslationTarget): readonly Buffer[] {
    const chunk = this.#partial === null ? arrived : Buffer.concat([this.#partial, arrived]);
    this.#partial = null;
    const run = new Run(chunk);
    while (run.at < chunk.length && !this.#isTerminated) {
      const left = chunk.length - run.at;
      if (this.#bodyLeft > 0) {
        const step = Math.min(this.#bodyLeft, left);
        this.#bodyLeft -= step;
        run.at += step;
        continue;
      }
      if (left < headerBytes) break;
      const type = chunk[run.at] ?? 0;
      const length = chunk.readUInt32BE(run.at + 1);
      if (length < 4 || length > messageBytesMax) throw new ProtocolError('invalid message length');
      if (left <= length && (left < keptBytesMax || type === types.parse)) {
        if (type === types.parse && length > statementBytesMax) throw tooLarge();
        break;
      }
      const end = Math.min(chunk.length, run.at + 1 + length);
      this.#pass(type, run, end, target);
      this.#bodyLeft = run.at + 1 + length - end;
      run.at = end;
    }
    if (run.at < chunk.length && !this.#isTerminated) this.#partial = Buffer.from(chunk.subarray(run.at));
    return run.finish();
  }

  /** The message from `run.at` to `end`, which is its end or, of a long one, of what is there. */
  #pass(type: number, run: Run, end: number, target: TranslationTarget): void {
    const { replies } = target;
    switch (type) {
      case types.parse:
        return void this.#parse(run, end, target);
      case types.bind:
        return void this.#bind(run, end, target);
      case types.describe:
        return void this.#describe(run, end, target);
      case types.close:
        return void this.#close(run, end, target);
      case types.execute:
        return void replies.expect(asked.execute);
      case types.sync:
        return void replies.expect(asked.sync);
      case types.query:
        // As in Postgres, a simple query ends the unnamed statement.
        this.#unnamed = null;
        this.#unnamedTurn = -1;
        return void replies.expect(asked.query);
      case types.call:
        return void replies.expect(asked.query);
      case types.copyDone:
      case types.copyFail:
        return void replies.expect(asked.copyEnd);
      case types.copyData:
      case types.flush:
        return;
      case types.terminate:
        this.#isTerminated = true;
        return void run.replace(null, end - run.at);
      default:
        throw new ProtocolError(`invalid frontend message type ${type}`);
    }
  }

  #parse(run: Run, end: number, target: TranslationTarget): void {
    const { replies } = target;
    const message = run.chunk.subarray(run.at, end);
    const nameEnd = endOfString(message, headerBytes);
    if (nameEnd === headerBytes) {
      replies.expect(asked.parse);
      // Most drivers bind it in the same breath; only otherwise may it be asked for in a later transaction.
      const next = run.chunk[end];
      this.#unnamed = next === types.bind ? null : Buffer.from(message);
      this.#unnamedTurn = target.turn;
      return;
    }
    const name = message.toString('latin1', headerBytes, nameEnd);
    const known = this.#statements.find(name);
    if (known !== undefined) {
      // Postgres refuses a second one of the same name, and shall do so here.
      this.#prepare(known, run, target);
      replies.expect(asked.parse);
      return void run.replace(parseMessage(known), message.length);
    }
    const content = message.subarray(nameEnd + 1);
    if (this.#statements.bytes + content.length > statementBytesMax) throw tooLarge();
    const statement = this.#statements.add(name, content);
    const undo = () => this.#statements.remove(name, statement);
    if (target.statements.has(statement)) {
      replies.expect(asked.parse | local, { undo });
      return void run.replace(null, message.length);
    }
    this.#makeRoom(statement, run, target);
    replies.expect(asked.parse, {
      undo: () => {
        target.statements.remove(statement);
        undo();
      },
    });
    run.replace(parseMessage(statement), message.length);
  }

  #bind(run: Run, end: number, target: TranslationTarget): void {
    const portalEnd = endOfString(run.chunk, run.at + headerBytes, end);
    const nameEnd = endOfString(run.chunk, portalEnd + 1, end);
    this.#rename(run, portalEnd + 1, nameEnd, target);
    target.replies.expect(asked.bind);
  }

  #describe(run: Run, end: number, target: TranslationTarget): void {
    const start = run.at + headerBytes;
    if (run.chunk[start] === statementKind)
      this.#rename(run, start + 1, endOfString(run.chunk, start + 1, end), target);
    target.replies.expect(asked.describe);
  }

  /** A statement stays on the server for others; the client's name for it goes. */
  #close(run: Run, end: number, target: TranslationTarget): void {
    const start = run.at + headerBytes;
    const name = run.chunk[start] === statementKind ? run.chunk.toString('latin1', start + 1, end - 1) : '';
    const statement = this.#statements.find(name);
    if (statement === undefined) return void target.replies.expect(asked.close);
    this.#statements.remove(name);
    target.replies.expect(asked.close | local, { undo: () => this.#statements.restore(name, statement) });
    run.replace(null, end - run.at);
  }

  /** Replaces the statement's name, which lies from `start` to `nameEnd` in the current message. */
  #rename(run: Run, start: number, nameEnd: number, target: TranslationTarget): void {
    if (start === nameEnd) return void this.#renameUnnamed(run, start, target);
    const statement = this.#statements.find(run.chunk.toString('latin1', start, nameEnd));
    // Not ours: the server says that it does not exist, unless SQL made it in this transaction.
    if (statement === undefined) return;
    this.#prepare(statement, run, target);
    run.replace(renamed(run, start, nameEnd, statement.name), nameEnd - run.at);
  }

  #renameUnnamed(run: Run, start: number, target: TranslationTarget): void {
    if (this.#unnamedTurn === target.turn) return;
    if (this.#unnamed === null) {
      // The server may hold one of another client; it must not be used.
      return void run.replace(renamed(run, start, start, Buffer.from(missingName)), start - run.at);
    }
    target.replies.expect(asked.parse | hidden);
    run.insert(this.#unnamed);
    this.#unnamedTurn = target.turn;
  }

  #prepare(statement: Statement, run: Run, target: TranslationTarget): void {
    if (target.statements.has(statement)) return;
    this.#makeRoom(statement, run, target);
    target.replies.expect(asked.parse | hidden, { undo: () => target.statements.remove(statement) });
    run.insert(parseMessage(statement));
  }

  #makeRoom(statement: Statement, run: Run, target: TranslationTarget): void {
    const evicted = target.statements.add(statement);
    if (evicted === null) return;
    target.replies.expect(asked.close | hidden);
    run.insert(closeMessage(evicted));
  }
}

function tooLarge(): CatnapError {
  return new CatnapError(
    'too_large',
    `prepared statements of a pooled connection hold ${statementBytesMax} bytes of text at most`,
  );
}
