/**
 * Prepared statements of pooled clients. Each client has names of its own. On servers each distinct text has one name,
 * so all clients of a pool that prepare the same text share what a server has prepared.
 *
 * A text means what the catalogue makes of it at the moment when it is prepared: the types of its parameters, say. So
 * a client uses nothing that a server has prepared before the client itself sent its Parse. `preparedAt` counts the
 * Parse messages of the pool, as a clock for that.
 *
 * What bytes mean beyond ASCII depends on the client's encoding, so a name and a text with such bytes is only the same
 * as another one in the same encoding.
 */
import { isAscii } from 'node:buffer';
import { StatementUse } from './request-queue.ts';

/** As in Postgres, which ignores the rest of a longer name. */
const nameBytesMax = 63;
const beyondAscii = /[^\0-\x7f]/;

/** What a client's name is found by: the bytes of the name, as latin1, with the encoding where it matters. */
export function nameKey(name: string, encoding: string): string {
  const significant = name.length > nameBytesMax ? name.slice(0, nameBytesMax) : name;
  return beyondAscii.test(name) ? `${significant}\0${encoding}` : significant;
}

/** The bytes of the name that a key belongs to, as latin1. */
function nameOfKey(key: string): string {
  const end = key.indexOf('\0');
  return end === -1 ? key : key.slice(0, end);
}

/** Whether the key belongs to a name that means something else in another encoding. */
export function hasEncoding(key: string): boolean {
  return key.includes('\0');
}

export class Statement {
  /** The name on servers. */
  readonly name: Buffer;
  /** The part of a Parse message behind the name: text and parameter types. */
  readonly content: Buffer;
  readonly key: string;
  /** How many clients and servers have it. */
  holders = 0;
  /** Some server may have it, whether it is in that server's list or not. */
  wasSent = false;

  constructor(id: number, content: Buffer, key: string) {
    this.name = Buffer.from(`catnap_${id}`, 'latin1');
    this.content = content;
    this.key = key;
  }
}

/** The statements of one pool, each of them once. */
export class StatementTable {
  readonly #byContent = new Map<string, Statement>();
  #lastId = 0;
  #now = 0;

  /** Counts the caller as a holder, until `release`. */
  acquire(content: Buffer, encoding: string): Statement {
    const text = content.toString('latin1');
    const key = isAscii(content) ? text : `${text}${encoding}`;
    let statement = this.#byContent.get(key);
    if (statement === undefined) {
      this.#lastId += 1;
      statement = new Statement(this.#lastId, Buffer.from(content), key);
      this.#byContent.set(key, statement);
    }
    statement.holders += 1;
    return statement;
  }

  release(statement: Statement): void {
    statement.holders -= 1;
    if (statement.holders === 0 && this.#byContent.get(statement.key) === statement) {
      this.#byContent.delete(statement.key);
    }
  }

  /** The time of the last Parse. */
  get now(): number {
    return this.#now;
  }

  /** The time of a new Parse. */
  tick(): number {
    this.#now += 1;
    return this.#now;
  }
}

/** A client's name of a statement. */
export interface NamedStatement {
  readonly statement: Statement;
  readonly preparedAt: number;
  /** What a request carries that names it. */
  readonly use: StatementUse;
  /** The batch of the Parse, until the server has confirmed it; then null. */
  parsedIn: number | null;
  /** The server has refused or skipped the Parse, so that nothing brings the name back. */
  isVoid: boolean;
}

/** What one client has prepared, by the client's own names. */
export class ClientStatements {
  readonly #table: StatementTable;
  /** Null until the client prepares something: many clients never do. */
  #byName: Map<string, NamedStatement> | null = null;
  #bytes = 0;
  /** Names that were removed by requests which the server has not replied to: it may skip them. */
  removalsDue = 0;

  constructor(table: StatementTable) {
    this.#table = table;
  }

  /** Bytes of text that are kept for the client. */
  get bytes(): number {
    return this.#bytes;
  }

  find(name: string): NamedStatement | undefined {
    return this.#byName?.get(name);
  }

  /** The client has sent a Parse. */
  add(name: string, content: Buffer, encoding: string, batch: number): NamedStatement {
    const statement = this.#table.acquire(content, encoding);
    const use = new StatementUse(statement.name, nameOfKey(name));
    const named = { statement, preparedAt: this.#table.tick(), use, parsedIn: batch, isVoid: false };
    this.#put(name, named);
    return named;
  }

  /** Undoes `remove`. */
  restore(name: string, named: NamedStatement): void {
    if (named.isVoid || this.find(name) !== undefined) return;
    named.statement.holders += 1;
    this.#put(name, named);
  }

  /** With `expected`, removes the name only if it still means that statement. */
  remove(name: string, expected?: NamedStatement): void {
    const named = this.find(name);
    if (named === undefined || (expected !== undefined && expected !== named)) return;
    this.#byName?.delete(name);
    this.#bytes -= named.statement.content.length;
    this.#table.release(named.statement);
  }

  clear(): void {
    for (const name of this.#byName?.keys() ?? []) this.remove(name);
  }

  #put(name: string, named: NamedStatement): void {
    this.#byName ??= new Map();
    this.#byName.set(name, named);
    this.#bytes += named.statement.content.length;
  }
}

/** What one server has prepared. When there are too many, the least recently used statement goes first. */
export class ServerStatements {
  readonly #table: StatementTable;
  readonly #max: number;
  /** When each was prepared. */
  readonly #prepared = new Map<Statement, number>();

  constructor(table: StatementTable, max: number) {
    this.#table = table;
    this.#max = max;
  }

  /** Whether the server has prepared it, and not before the client did. */
  has({ statement, preparedAt }: NamedStatement): boolean {
    const at = this.#prepared.get(statement);
    if (at === undefined || at < preparedAt) return false;
    // The order only matters when the limit is near.
    if (this.#prepared.size * 2 > this.#max) {
      this.#prepared.delete(statement);
      this.#prepared.set(statement, at);
    }
    return true;
  }

  /** For a statement that is prepared again after all were dropped. */
  restore(statement: Statement, preparedAt: number): void {
    this.remove(statement);
    statement.holders += 1;
    this.#prepared.set(statement, preparedAt);
  }

  /** Returns the statement that has to be closed to make room, if any. */
  add(statement: Statement): Statement | null {
    this.remove(statement);
    let evicted: Statement | null = null;
    if (this.#prepared.size >= this.#max) {
      [evicted = null] = this.#prepared.keys();
      if (evicted !== null) this.remove(evicted);
    }
    statement.holders += 1;
    this.#prepared.set(statement, this.#table.now);
    return evicted;
  }

  remove(statement: Statement): void {
    if (this.#prepared.delete(statement)) this.#table.release(statement);
  }

  clear(): void {
    for (const statement of this.#prepared.keys()) this.remove(statement);
  }
}
