/**
 * A store in a bucket of S3 or of a server that speaks its protocol. Streams go up in parts, each of which is kept in
 * memory until the server has it, so that it can be sent again. The client library is loaded by the first use.
 */

import { Readable } from 'node:stream';
import type { GetObjectCommandOutput, ListObjectsV2CommandOutput, S3Client } from '@aws-sdk/client-s3';
import type { S3Access } from '../../lib/backup-settings.ts';
import { dayMs } from '../../lib/clock.ts';
import { quietLibraryNotices } from '../../lib/config.ts';
import {
  checkedKey,
  NoSuchObjectError,
  ObjectChangedError,
  ObjectExistsError,
  type ObjectStore,
  type PutOptions,
  type StoredObject,
  StoreError,
  type StoreTrouble,
} from './object-store.ts';
import { type Resuming, resumedBody } from './resumed-body.ts';

const mebibyte = 1024 * 1024;
const partBytesMin = 8 * mebibyte;
/** S3 takes 10,000 parts; a few are spare, because what a stream can hold is an estimate. */
const partsMax = 9_000;
/** Together with the part that is being filled, what one upload keeps in memory. */
const partsAtOnce = 2;
const attempts = 4;
const connectMs = 10_000;
/** Without a byte in either direction. */
const silenceMs = 60_000;

type Library = typeof import('@aws-sdk/client-s3') & typeof import('@aws-sdk/lib-storage');

export class S3Store implements ObjectStore {
  readonly url: string;
  readonly #bucket: string;
  /** Empty, or ends in a slash. */
  readonly #prefix: string;
  readonly #access: S3Access;
  readonly #reading: Pick<Resuming, 'pauseMs'>;
  #opened: Promise<{ client: S3Client; library: Library }> | undefined;

  /** `reading` is for tests. */
  constructor(
    { bucket, prefix }: { readonly bucket: string; readonly prefix: string },
    access: S3Access,
    reading: Pick<Resuming, 'pauseMs'> = {},
  ) {
    this.#reading = reading;
    this.#bucket = bucket;
    this.#prefix = prefix === '' ? '' : `${prefix}/`;
    this.#access = access;
    this.url = `s3://${bucket}${prefix === '' ? '' : `/${prefix}`}`;
  }

  async put(key: string, body: Readable | Uint8Array, options: PutOptions = {}): Promise<StoredObject> {
    const { client, library } = await this.#open();
    const upload = new library.Upload({
      client,
      queueSize: partsAtOnce,
      partSize: Math.max(partBytesMin, Math.ceil((options.bytesAtMost ?? 0) / partsMax)),
      params: {
        ...this.#at(key),
        Body: body,
        ContentType: 'application/octet-stream',
        ...(options.ifAbsent === true && { IfNoneMatch: '*' }),
      },
    });
    let bytes = 0;
    upload.on('httpUploadProgress', ({ loaded }) => {
      bytes = loaded ?? bytes;
    });
    const done = await this.#guard(key, () => upload.done());
    const version = unquoted(done.ETag);
    if (version !== '') return { key, bytes, version, changedAt: new Date() };
    // Ceph does not say what came of an upload in parts.
    const found = await this.head(key);
    if (found === null) throw new StoreError('other', `${this.url}: ${key} is not there after its upload`);
    return found;
  }

  async get(key: string): Promise<Readable> {
    const { client, library } = await this.#open();
    const found = await this.#guard(key, () => client.send(new library.GetObjectCommand(this.#at(key))));
    const { ETag: tag, ContentLength: bytes } = found;
    const body = this.#bodyOf(found);
    if (tag === undefined || bytes === undefined) return body;
    return resumedBody(
      { body, bytes },
      { ...this.#reading, readFrom: (at) => this.#readOn(key, tag, at), explain: (error) => this.#lost(key, error) },
    );
  }

  /** The rest of an object that still is what it was when its first bytes were read. */
  async #readOn(key: string, tag: string, at: number): Promise<Readable> {
    const { client, library } = await this.#open();
    const command = new library.GetObjectCommand({ ...this.#at(key), IfMatch: tag, Range: `bytes=${at}-` });
    const found = await client.send(command).catch((error: unknown) => {
      const { name, status } = factsOf(error);
      // An object that is shorter now has no such range.
      const isChanged = status === 412 || status === 416 || name === 'PreconditionFailed' || name === 'InvalidRange';
      throw isChanged ? new ObjectChangedError(key) : this.#explained(key, error);
    });
    const body = this.#bodyOf(found);
    // A server may know neither condition nor ranges.
    const isSame = found.ETag === tag;
    if (isSame && (at === 0 || found.ContentRange?.startsWith(`bytes ${at}-`))) return body;
    body.destroy();
    if (!isSame) throw new ObjectChangedError(key);
    throw new StoreError('other', `${this.url}: the connection was lost, and the store cannot send a part of ${key}`);
  }

  #bodyOf({ Body: body }: GetObjectCommandOutput): Readable {
    if (!(body instanceof Readable)) throw new StoreError('other', `${this.url}: a reply without a body`);
    return body;
  }

  /** Whatever ends a body too early, except what was found out when it should go on, is a lost connection. */
  #lost(key: string, error: unknown): unknown {
    if (error instanceof StoreError || error instanceof ObjectChangedError || error instanceof NoSuchObjectError)
      return error;
    const { name, message } = factsOf(error);
    return this.#trouble('unreachable', `the connection was lost while ${key} was read (${name}: ${message})`, error);
  }

  async head(key: string): Promise<StoredObject | null> {
    const { client, library } = await this.#open();
    try {
      const found = await this.#guard(key, () => client.send(new library.HeadObjectCommand(this.#at(key))));
      const { ContentLength: bytes = 0, LastModified: changedAt = new Date(0), ETag } = found;
      return { key, bytes, changedAt, version: unquoted(ETag) };
    } catch (error) {
      if (error instanceof NoSuchObjectError) return null;
      throw error;
    }
  }

  async *list(prefix: string): AsyncIterable<StoredObject> {
    const { client, library } = await this.#open();
    const where = { Bucket: this.#bucket, Prefix: `${this.#prefix}${prefix}` };
    for (let token: string | undefined; ; ) {
      const command = new library.ListObjectsV2Command({ ...where, ContinuationToken: token });
      const page: ListObjectsV2CommandOutput = await this.#guard(prefix, () => client.send(command));
      for (const { Key = '', Size: bytes = 0, LastModified: changedAt = new Date(0), ETag } of page.Contents ?? []) {
        yield { key: Key.slice(this.#prefix.length), bytes, changedAt, version: unquoted(ETag) };
      }
      if (page.IsTruncated !== true || page.NextContinuationToken === undefined) return;
      token = page.NextContinuationToken;
    }
  }

  async remove(key: string): Promise<void> {
    const { client, library } = await this.#open();
    try {
      await this.#guard(key, () => client.send(new library.DeleteObjectCommand(this.#at(key))));
    } catch (error) {
      if (!(error instanceof NoSuchObjectError)) throw error;
    }
  }

  async sweep(): Promise<void> {
    const { client, library } = await this.#open();
    const list = new library.ListMultipartUploadsCommand({ Bucket: this.#bucket, Prefix: this.#prefix });
    // Not every server lists them; then a rule of the bucket has to remove what was never finished.
    const { Uploads: uploads = [] } = await client.send(list).catch(() => ({ Uploads: [] }));
    for (const { Key, UploadId, Initiated } of uploads) {
      if (Key === undefined || UploadId === undefined || Date.now() - (Initiated?.getTime() ?? 0) < dayMs) continue;
      const abort = new library.AbortMultipartUploadCommand({ Bucket: this.#bucket, Key, UploadId });
      await client.send(abort).catch(() => {});
    }
  }

  close(): void {
    void this.#opened?.then(({ client }) => client.destroy());
  }

  #at(key: string) {
    return { Bucket: this.#bucket, Key: `${this.#prefix}${checkedKey(key)}` };
  }

  #open() {
    this.#opened ??= this.#load();
    return this.#opened;
  }

  async #load() {
    quietLibraryNotices();
    const library: Library = { ...(await import('@aws-sdk/client-s3')), ...(await import('@aws-sdk/lib-storage')) };
    const { endpoint, region, accessKeyId, secretAccessKey, sessionToken, pathStyle } = this.#access;
    const client = new library.S3Client({
      ...(endpoint !== undefined && { endpoint }),
      region,
      forcePathStyle: pathStyle,
      credentials: { accessKeyId, secretAccessKey, ...(sessionToken !== undefined && { sessionToken }) },
      maxAttempts: attempts,
      requestHandler: { connectionTimeout: connectMs, socketTimeout: silenceMs },
      // Servers that are not Amazon's often refuse the newer checksums; objects carry a proof of their own.
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
    });
    return { client, library };
  }

  async #guard<T>(key: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw this.#explained(key, error);
    }
  }

  #explained(key: string, error: unknown): unknown {
    const { name, message, status } = factsOf(error);
    if (name === 'PreconditionFailed' || status === 412) return new ObjectExistsError(key);
    if (name === 'NoSuchBucket') return this.#trouble('no_bucket', 'there is no such bucket', error);
    if (name === 'NoSuchKey' || name === 'NotFound' || status === 404) return new NoSuchObjectError(key);
    // Before refusals: Ceph answers a used up quota with 403.
    if (status === 507 || fullNames.has(name))
      return this.#trouble('full', `the store is full; uploads go on by themselves when it is not (${name})`, error);
    if (status === 401 || status === 403) return this.#trouble('denied', `the store refuses (${name})`, error);
    // Only failures of the network have no status: a body that cannot be read is passed on as it is.
    if (status === undefined && !networkNames.test(name)) return error;
    const trouble = status === undefined || status >= 500 ? 'unreachable' : 'other';
    return this.#trouble(
      trouble,
      `${trouble === 'other' ? 'the store refuses' : 'no answer'} (${name}: ${message})`,
      error,
    );
  }

  #trouble(trouble: StoreTrouble, message: string, cause: unknown): StoreError {
    return new StoreError(trouble, `${this.url}: ${message}`, { cause });
  }
}

const fullNames = new Set(['QuotaExceeded', 'QuotaExceededException', 'InsufficientStorage', 'XMinioStorageFull']);
const networkNames = /^(E[A-Z]+|TimeoutError|AbortError|UnknownError|.*(Socket|Network|Connection).*)$/;

function factsOf(error: unknown): { name: string; message: string; status: number | undefined } {
  if (!(error instanceof Error)) return { name: 'UnknownError', message: String(error), status: undefined };
  const { code } = error as NodeJS.ErrnoException;
  const { $metadata: metadata } = error as { $metadata?: { readonly httpStatusCode?: number } };
  const name = error.name === 'Error' || error.name === 'AggregateError' ? (code ?? error.name) : error.name;
  return { name, message: error.message, status: metadata?.httpStatusCode };
}

const unquoted = (tag = '') => tag.replaceAll('"', '');
