/** What requests change in the lists of statements when they are sent, in the belief that they will succeed. */
import type { StatementChange } from './request-queue.ts';
import type { ClientStatements, NamedStatement, ServerStatements, Statement } from './statements.ts';

/** A Parse under a name. */
export class NameAddition implements StatementChange {
  readonly #key: string;
  readonly #named: NamedStatement;
  readonly #client: ClientStatements;
  readonly #server: ServerStatements;

  constructor(key: string, named: NamedStatement, client: ClientStatements, server: ServerStatements) {
    this.#key = key;
    this.#named = named;
    this.#client = client;
    this.#server = server;
  }

  done(): void {
    this.#named.parsedIn = null;
  }

  undo(): void {
    this.#named.parsedIn = null;
    this.#named.isVoid = true;
    this.#server.remove(this.#named.statement);
    this.#client.remove(this.#key, this.#named);
  }

  redo(): void {
    this.#server.restore(this.#named.statement, this.#named.preparedAt);
    this.#client.restore(this.#key, this.#named);
  }
}

/** A Close or a DEALLOCATE of a name. */
export class NameRemoval implements StatementChange {
  readonly #key: string;
  readonly #client: ClientStatements;
  #named: NamedStatement | undefined;

  constructor(key: string, client: ClientStatements) {
    this.#key = key;
    this.#client = client;
    client.removalsDue += 1;
    this.redo();
  }

  done(): void {
    this.#client.removalsDue -= 1;
  }

  undo(): void {
    this.#client.removalsDue -= 1;
    if (this.#named !== undefined) this.#client.restore(this.#key, this.#named);
  }

  redo(): void {
    this.#named = this.#client.find(this.#key);
    this.#client.remove(this.#key);
  }
}

/** A Parse of the proxy's own, which gives a server what it does not have. */
export class ServerAddition implements StatementChange {
  readonly #statement: Statement;
  readonly #server: ServerStatements;
  readonly #preparedAt: number;

  constructor(statement: Statement, server: ServerStatements, preparedAt: number) {
    this.#statement = statement;
    this.#server = server;
    this.#preparedAt = preparedAt;
  }

  done(): void {}

  undo(): void {
    this.#server.remove(this.#statement);
  }

  redo(): void {
    this.#server.restore(this.#statement, this.#preparedAt);
  }
}

export class BothChanges implements StatementChange {
  readonly #one: StatementChange;
  readonly #other: StatementChange;

  constructor(one: StatementChange, other: StatementChange) {
    this.#one = one;
    this.#other = other;
  }

  done(): void {
    this.#one.done();
    this.#other.done();
  }

  undo(how: 'refused' | 'skipped'): void {
    this.#one.undo(how);
    this.#other.undo(how);
  }

  redo(): void {
    this.#one.redo();
    this.#other.redo();
  }
}
