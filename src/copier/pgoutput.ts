/** Messages of the output plugin `pgoutput`, protocol version 1: what a transaction has done to published tables. */

/** Text as the server prints it; null, or undefined where a large value has not changed and is not sent. */
export type Value = string | null | undefined;

export interface Relation {
  readonly id: number;
  readonly schema: string;
  readonly name: string;
  readonly columns: readonly { readonly name: string; readonly isKey: boolean }[];
}

export type Message =
  | { readonly kind: 'begin'; readonly commitLsn: bigint }
  | { readonly kind: 'commit'; readonly commitLsn: bigint; readonly endLsn: bigint }
  | { readonly kind: 'relation'; readonly relation: Relation }
  | { readonly kind: 'insert'; readonly relationId: number; readonly row: readonly Value[] }
  | {
      readonly kind: 'update';
      readonly relationId: number;
      readonly key: readonly Value[] | null;
      readonly row: readonly Value[];
    }
  | { readonly kind: 'delete'; readonly relationId: number; readonly key: readonly Value[] }
  | { readonly kind: 'truncate'; readonly relationIds: readonly number[] }
  /** Of no consequence here, such as the name of a type. */
  | { readonly kind: 'other' };

export function decode(bytes: Buffer): Message {
  const reader = new Reader(bytes);
  switch (reader.letter()) {
    case 'B':
      return { kind: 'begin', commitLsn: reader.int64() };
    case 'C':
      reader.int8();
      return { kind: 'commit', commitLsn: reader.int64(), endLsn: reader.int64() };
    case 'R':
      return { kind: 'relation', relation: relationFrom(reader) };
    case 'I': {
      const relationId = reader.int32();
      reader.letter();
      return { kind: 'insert', relationId, row: reader.tuple() };
    }
    case 'U': {
      const relationId = reader.int32();
      // The old key comes first, if it has changed.
      const key = reader.letter() === 'N' ? null : reader.tuple();
      if (key !== null) reader.letter();
      return { kind: 'update', relationId, key, row: reader.tuple() };
    }
    case 'D': {
      const relationId = reader.int32();
      reader.letter();
      return { kind: 'delete', relationId, key: reader.tuple() };
    }
    case 'T': {
      const count = reader.int32();
      reader.int8();
      return { kind: 'truncate', relationIds: Array.from({ length: count }, () => reader.int32()) };
    }
    default:
      return { kind: 'other' };
  }
}

function relationFrom(reader: Reader): Relation {
  const id = reader.int32();
  const schema = reader.text();
  const name = reader.text();
  reader.int8();
  const columns = Array.from({ length: reader.int16() }, () => {
    const isKey = reader.int8() === 1;
    const column = reader.text();
    reader.int32();
    reader.int32();
    return { name: column, isKey };
  });
  // A name without a schema is one of the system's.
  return { id, schema: schema === '' ? 'pg_catalog' : schema, name, columns };
}

class Reader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  letter(): string {
    return String.fromCharCode(this.int8());
  }

  int8(): number {
    return this.#bytes.readUInt8(this.#move(1));
  }

  int16(): number {
    return this.#bytes.readUInt16BE(this.#move(2));
  }

  int32(): number {
    return this.#bytes.readUInt32BE(this.#move(4));
  }

  int64(): bigint {
    return this.#bytes.readBigUInt64BE(this.#move(8));
  }

  text(): string {
    const end = this.#bytes.indexOf(0, this.#at);
    const text = this.#bytes.toString('utf8', this.#at, end);
    this.#at = end + 1;
    return text;
  }

  tuple(): readonly Value[] {
    return Array.from({ length: this.int16() }, () => this.#value());
  }

  #value(): Value {
    const form = this.letter();
    if (form === 'n') return null;
    if (form === 'u') return undefined;
    const length = this.int32();
    const from = this.#move(length);
    return this.#bytes.toString('utf8', from, from + length);
  }

  #move(count: number): number {
    const from = this.#at;
    this.#at += count;
    return from;
  }
}
