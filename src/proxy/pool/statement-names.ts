/** Which of its statements a client means by a name, and whether that can be known before the server has replied. */
import type { ChunkEditor } from './chunk-editor.ts';
import { deallocatedName } from './deallocate.ts';
import { headerBytes, namesStatement, requestTypes } from './message-types.ts';
import type { ReplyScanner } from './reply-scanner.ts';
import { type ClientStatements, hasEncoding, nameKey, type ServerStatements } from './statements.ts';
import { clientEncodingIndex, type TrackedValues } from './tracked-settings.ts';
import type { UnnamedStatement } from './unnamed-statement.ts';

/** The server connection, as far as the translation needs it. */
export interface TranslationTarget {
  readonly replies: ReplyScanner;
  readonly statements: ServerStatements;
  /** A new number each time a client gets a server: an unnamed statement lasts for one turn. */
  readonly turn: number;
}

export interface TranslatedClient {
  readonly values: TrackedValues;
}

export class StatementNames {
  readonly #statements: ClientStatements;
  readonly #unnamed: UnnamedStatement;
  readonly #client: TranslatedClient;

  constructor(statements: ClientStatements, unnamed: UnnamedStatement, client: TranslatedClient) {
    this.#statements = statements;
    this.#unnamed = unnamed;
    this.#client = client;
  }

  /**
   * What a message does to a statement, or with it, may depend on replies that have not come: a Parse may be refused, a
   * Close be skipped, DISCARD ALL succeed, the encoding change. Then the message waits for them. During a COPY it does
   * not: it is what ends the COPY, with an error.
   */
  mustWait(type: number, editor: ChunkEditor, end: number, target: TranslationTarget): boolean {
    const { replies } = target;
    if (type !== requestTypes.query && !namesStatement(type)) return false;
    if (!replies.isReplyDue || replies.isReadingCopy) return false;
    const isUse = type === requestTypes.bind || type === requestTypes.describe;
    let key = '';
    if (type === requestTypes.query) key = this.deallocatedKey(editor, editor.at + headerBytes, end) ?? '';
    else if (editor.nameStart === -1) return false;
    else if (editor.nameStart < editor.nameEnd) key = this.keyAt(editor);
    else if (isUse) return this.#unnamed.isInDoubt(replies.batch);
    else if (type === requestTypes.parse) key = this.deallocatedKey(editor, editor.nameEnd + 1, end) ?? '';
    if (key === '') return false;
    if (hasEncoding(key)) return true;
    const named = this.#statements.find(key);
    if (named === undefined) return this.#statements.removalsDue > 0;
    if (!isUse) return type !== requestTypes.close;
    if (named.parsedIn !== null && named.parsedIn !== replies.batch) return true;
    return replies.isCommandDue && !target.statements.has(named);
  }

  keyAt({ chunk, nameStart, nameEnd }: ChunkEditor): string {
    return nameKey(chunk.toString('latin1', nameStart, nameEnd), this.encoding);
  }

  /** What the text deallocates. Null when the text does something else. */
  deallocatedKey({ chunk }: ChunkEditor, textStart: number, end: number): string | null {
    const name = deallocatedName(chunk, textStart, end);
    return name === null ? null : nameKey(name, this.encoding);
  }

  get encoding(): string {
    return this.#client.values[clientEncodingIndex] ?? '';
  }
}
