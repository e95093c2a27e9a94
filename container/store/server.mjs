/**
 * The S3 server from npm, except that an object appears whole, as in a real one: its own way is to write objects in
 * place and to answer before their last bytes are on disk, so that a reader sees half an object.
 * Arguments: the folder of the server from npm, the folder of the buckets, the port, and to serve other machines the
 * address. With an address there is a bucket `catnap`, and keys are those of the environment; without one, tests make
 * their buckets, and the key is the server's own.
 */
import { createHash, randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { mkdir, rename } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

const [, , library = '', directory = '', port = '', address] = process.argv;
const require = createRequire(import.meta.url);
const S3rver = require(library);
const FilesystemStore = require(join(library, 'lib', 'stores', 'filesystem.js'));

FilesystemStore.prototype.putObject = async function putObject({ bucket, key, content, metadata }) {
  const making = join(this.rootDirectory, `.making-${randomUUID()}`);
  const hash = createHash('md5');
  let size = 0;
  const counted = async function* (pieces) {
    for await (const piece of pieces) {
      hash.update(piece);
      size += piece.length;
      yield piece;
    }
  };
  const body = Buffer.isBuffer(content) ? Readable.from([content], { objectMode: false }) : content;
  await pipeline(body, counted, createWriteStream(making));
  await place(making, this.getResourcePath(bucket, key, 'object'));
  const md5 = hash.digest('hex');
  await this.putMetadata(bucket, key, metadata, md5);
  return { size, md5 };
};

/** A removal at the same time takes folders away that are empty. */
async function place(making, target) {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await mkdir(dirname(target), { recursive: true });
      return await rename(making, target);
    } catch (error) {
      if (error.code !== 'ENOENT' || attempt === 5) throw error;
    }
  }
}

if (address === undefined) {
  await new S3rver({ directory, port: Number(port), address: '127.0.0.1', silent: true }).run();
} else {
  const { CATNAP_STORE_KEY: key, CATNAP_STORE_SECRET: secret } = process.env;
  if (!key || !secret) throw new Error('CATNAP_STORE_KEY and CATNAP_STORE_SECRET must be set');
  const { DUMMY_ACCOUNT: account } = require(join(library, 'lib', 'models', 'account.js'));
  account.createKeyPair(key, secret);
  account.revokeAccessKey('S3RVER');
  // Otherwise the name of the host is taken for a bucket.
  const buckets = { vhostBuckets: false, configureBuckets: [{ name: 'catnap' }] };
  await new S3rver({ directory, port: Number(port), address, silent: true, ...buckets }).run();
}
