/**
 * A place off the machine that keeps objects by name. Two kinds exist, a folder (`file-store.ts`) and a bucket
 * (`s3-store.ts`); everything above them sees this interface, and failures of one kind, `StoreError`.
 */
import type { Readable } from 'node:stream';

export interface StoredObject {
  /** Relative to the store's prefix. */
  readonly key: string;
  readonly bytes: number;
  /** Another after the object was written again, by anybody; the same in the replies of `put`, `head` and `list`. */
  readonly version: string;
  readonly changedAt: Date;
}

export interface PutOptions {
  /** Fails with ObjectExistsError if there is an object of that name. Some S3 servers ignore it: read back. */
  readonly ifAbsent?: boolean;
  /** The most that the stream can hold, from which the size of an upload's parts follows. */
  readonly bytesAtMost?: number;
}

export interface ObjectStore {
  /** For people: the URL, which holds no secrets. */
  readonly url: string;
  /** Complete or not at all: until it returns, readers see the old object. */
  put(key: string, body: Readable | Uint8Array, options?: PutOptions): Promise<StoredObject>;
  /**
   * Fails with NoSuchObjectError, before it returns a stream. A stream that is interrupted goes on by itself; it ends
   * with ObjectChangedError where it could only go on with other bytes.
   */
  get(key: string): Promise<Readable>;
  head(key: string): Promise<StoredObject | null>;
  /** All objects whose names begin with `prefix`, page by page, in no particular order. */
  list(prefix: string): AsyncIterable<StoredObject>;
  /** Also succeeds if there is no such object. */
  remove(key: string): Promise<void>;
  /** Removes what uploads that were killed have left behind. */
  sweep(): Promise<void>;
  close(): void;
}

/** `other` is a failure that the store reports and that nothing here knows by name. */
export type StoreTrouble = 'unreachable' | 'denied' | 'full' | 'no_bucket' | 'other';

/** The store could not do what it was asked to. The message is for the operator and holds no secret. */
export class StoreError extends Error {
  readonly trouble: StoreTrouble;

  constructor(trouble: StoreTrouble, message: string, options?: { readonly cause?: unknown }) {
    super(message, options);
    this.name = 'StoreError';
    this.trouble = trouble;
  }
}

export const isFull = (error: unknown) => error instanceof StoreError && error.trouble === 'full';

export class NoSuchObjectError extends Error {
  constructor(key: string) {
    super(`the store has no object ${key}`);
    this.name = 'NoSuchObjectError';
  }
}

/** It was written again while it was read, and its old bytes are gone: whoever reads it begins anew. */
export class ObjectChangedError extends Error {
  constructor(key: string) {
    super(`the object ${key} was changed while it was read`);
    this.name = 'ObjectChangedError';
  }
}

export class ObjectExistsError extends Error {
  constructor(key: string) {
    super(`the store has an object ${key} already`);
    this.name = 'ObjectExistsError';
  }
}

const keyPattern = /^[A-Za-z0-9_][A-Za-z0-9._-]*(\/[A-Za-z0-9_][A-Za-z0-9._-]*)*$/;

/** Names become paths of a folder, so none may lead out of it or be hidden. */
export function checkedKey(key: string): string {
  if (key.length > 900 || !keyPattern.test(key)) throw new Error(`not the name of an object: ${JSON.stringify(key)}`);
  return key;
}
