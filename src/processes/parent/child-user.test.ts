import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { chooseChildUser } from './child-user.ts';

const isRoot = process.getuid?.() === 0;
const uids = { service: 700_000, systemDatabase: 700_001, firstTenant: 701_000 };

let folder = '';
let program: URL;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'catnap-child-user-'));
  const file = join(folder, 'child.js');
  await writeFile(file, '');
  program = pathToFileURL(file);
});
afterAll(() => rm(folder, { recursive: true, force: true }));

test('children begin as the user of their parent where they can change it, or there is no other', async () => {
  expect(await chooseChildUser(uids, program)).toBeNull();
  expect(await chooseChildUser(uids, program, () => false)).toBeNull();
  expect(await chooseChildUser(null, program, () => true)).toBeNull();
});

test.skipIf(!isRoot)(
  'where Node refuses, they begin as the other user, who must be able to read the program',
  async () => {
    await chmod(folder, 0o700);
    await expect(chooseChildUser(uids, program, () => true)).rejects.toThrow(
      /^uid 700000 cannot read .*child\.js, and this Node .*CVE-2024-22017.*let other users pass to it/,
    );
    await chmod(folder, 0o755);
    expect(await chooseChildUser(uids, program, () => true)).toEqual({ uid: 700_000, gid: 700_000 });
  },
);
