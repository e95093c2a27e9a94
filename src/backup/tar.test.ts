import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { chmod, mkdir, mkdtemp, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { pack } from 'tar-stream';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { packFiles, packFolder, unpackFolder } from './tar.ts';

const run = promisify(execFile);
let folder: string;
const at = (...names: string[]) => join(folder, ...names);

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cn-tar-'));
  await mkdir(at('from', 'base', '1'), { recursive: true });
  await mkdir(at('from', 'pg_wal'), { mode: 0o700 });
  await mkdir(at('to'));
});

afterEach(() => rm(folder, { recursive: true }));

test('a folder comes back as it was', async () => {
  const large = randomBytes(3_000_001);
  await writeFile(at('from', 'base', '1', 'x'.repeat(99)), large);
  await writeFile(at('from', 'PG_VERSION'), '17\n', { mode: 0o600 });
  await writeFile(at('from', 'empty'), '');
  await chmod(at('from', 'base'), 0o700);
  await unpackFolder(packFolder(at('from')), at('to'));
  await run('diff', ['-r', at('from'), at('to')]);
  expect((await readFile(at('to', 'base', '1', 'x'.repeat(99)))).equals(large)).toBe(true);
  expect((await stat(at('to', 'pg_wal'))).mode & 0o777).toBe(0o700);
  expect((await stat(at('to', 'PG_VERSION'))).mode & 0o777).toBe(0o600);
});

test('tar unpacks it', async () => {
  await writeFile(at('from', 'base', '1', 'file'), randomBytes(100_000));
  await pipeline(packFolder(at('from')), createWriteStream(at('x.tar')));
  await run('tar', ['-xf', at('x.tar'), '-C', at('to')]);
  const { stdout } = await run('diff', ['-r', at('from'), at('to')]);
  expect(stdout).toBe('');
});

test('a link in a data directory is refused, whichever way it goes', async () => {
  await symlink('/etc/passwd', at('from', 'link'));
  await expect(buffer(packFolder(at('from')))).rejects.toThrow(/is a link to/);
  const packed = pack();
  packed.entry({ name: 'link', type: 'symlink', linkname: '/etc' });
  packed.finalize();
  await expect(unpackFolder(Readable.from(packed), at('to'))).rejects.toThrow(/neither a file nor a folder/);
});

test.each(['../out', 'a/../../out', '/etc/out', './out'])('an entry %j is refused', async (name) => {
  const packed = pack();
  packed.entry({ name }, 'x');
  packed.finalize();
  await expect(unpackFolder(Readable.from(packed), at('to'))).rejects.toThrow(/leads out of it/);
});

test('files that are in memory become an archive too', async () => {
  await unpackFolder(packFiles([{ name: 'keys/secret.key', content: Buffer.from('s') }]), at('to'));
  expect(await readFile(at('to', 'keys', 'secret.key'), 'utf8')).toBe('s');
});

test('a folder that goes away while it is packed ends the stream', async () => {
  await expect(buffer(packFolder(at('nowhere')))).rejects.toThrow(/ENOENT/);
});

test('an archive that is cut short is refused', async () => {
  await writeFile(at('from', 'file'), randomBytes(100_000));
  const whole = await buffer(packFolder(at('from')));
  await expect(unpackFolder(Readable.from([whole.subarray(0, 50_000)]), at('to'))).rejects.toThrow(/end of data/i);
});
