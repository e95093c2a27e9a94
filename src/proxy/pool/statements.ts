/**
 * Prepared statements of pooled clients. Each client has names of its own. On servers each distinct text has one name,
 * so all clients of a pool that prepare the same text share what a server has prepared.
 */

export class Statement {
  /** The name on servers. */
  readonly name: Buffer;
  /** The part of a Parse message behind the name: text and parameter types. */
  readonly content: Buffer;
  readonly key: string;
  /** How many clients and servers have it. */
  holders = 0;

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

  /** Counts the caller as a holder, until `release`. */
  acquire(content: Buffer): Statement {
    const key = content.toString('latin1');
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

  /** What servers have prepared is stale: the same text, prepared again, becomes a new statement. */
  forgetAll(): void {
    this.#byContent.clear();
  }
}

/** What one client has prepared, by the client's own names. */
export class ClientStatements {
  readonly #table: StatementTable;
  /** Null until the client prepares something: many clients never do. */
  #byName: Map<string, Statement> | null = null;
  #bytes = 0;

  constructor(table: StatementTable) {
    this.#table = table;
  }

  /** Bytes of text that are kept for the client. */
  get bytes(): number {
    return this.#bytes;
  }

  find(name: string): Statement | undefined {
    return this.#byName?.get(name);
  }

  add(name: string, content: Buffer): Statement {
    const statement = this.#table.acquire(content);
    this.#put(name, statement);
    return statement;
  }

  /** Undoes `remove`. */
  restore(name: string, statement: Statement): void {
    if (this.find(name) !== undefined) return;
    statement.holders += 1;
    this.#put(name, statement);
  }

  /** With `expected`, removes the name only if it still means that statement. */
  remove(name: string, expected?: Statement): void {
    const statement = this.find(name);
    if (statement === undefined || (expected !== undefined && expected !== statement)) return;
    this.#byName?.delete(name);
    this.#bytes -= statement.content.length;
    this.#table.release(statement);
  }

  clear(): void {
    for (const name of this.#byName?.keys() ?? []) this.remove(name);
  }

  #put(name: string, statement: Statement): void {
    this.#byName ??= new Map();
    this.#byName.set(name, statement);
    this.#bytes += statement.content.length;
  }
}

/** What one server has prepared. When there are too many, the least recently used statement goes first. */
export class ServerStatements {
  readonly #table: StatementTable;
  readonly #max: number;
  readonly #prepared = new Set<Statement>();

  constructor(table: StatementTable, max: number) {
    this.#table = table;
    this.#max = max;
  }

  has(statement: Statement): boolean {
    if (!this.#prepared.has(statement)) return false;
    // The order only matters when the limit is near.
    if (this.#prepared.size * 2 > this.#max) {
      this.#prepared.delete(statement);
      this.#prepared.add(statement);
    }
    return true;
  }

  /** Returns the statement that has to be closed to make room, if any. */
  add(statement: Statement): Statement | null {
    let evicted: Statement | null = null;
    if (this.#prepared.size >= this.#max) {
      [evicted = null] = this.#prepared;
      if (evicted !== null) this.remove(evicted);
    }
    statement.holders += 1;
    this.#prepared.add(statement);
    return evicted;
  }

  remove(statement: Statement): void {
    if (this.#prepared.delete(statement)) this.#table.release(statement);
  }

  clear(): void {
    for (const statement of this.#prepared) this.remove(statement);
  }
}
