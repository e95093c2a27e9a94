import { existsSync, writeFileSync } from 'node:fs';
import { chown, cp, link, lstat, mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../../../test/helpers/eventually.ts';
import { whyNoLoopDisk } from '../../../test/helpers/loop-disk.ts';
import { makeTempHome, type TempHome } from '../../../test/helpers/temp-home.ts';
import { detectCloneMethod } from '../../compute/local/host/copy/method.ts';
import { mountsUnder, unmountUnder } from '../../compute/local/host/disks/mounts.ts';
import {
  commitStorage,
  makeStorage,
  readStorageRecord,
  whyNoStorage,
} from '../../compute/local/host/disks/storage-image.ts';
import { runProgram } from '../../lib/run-program.ts';
import { ensureHome } from '../home.ts';
import { takeInstanceLock } from '../instance-lock.ts';
import { createStorage, planStorage, storageBytesMin } from './create.ts';
import { storageStatus } from './status.ts';

const asRoot = process.getuid?.() === 0;
const bytes = storageBytesMin;
const problem = await whyNoLoopDisk('xfs');
const ignore = () => undefined;

let place: TempHome;
let home: string;
beforeEach(async () => {
  place = await makeTempHome();
  home = place.path;
});
afterEach(async () => {
  await place.remove();
  await eventually(async () => expect([...(await mountsUnder(home)), ...(await loopDevices())]).toEqual([]));
});

/** Files of this home that a loop device holds, including deleted ones. */
async function loopDevices(): Promise<string[]> {
  const devices = (await readdir('/sys/block').catch(() => [])).filter((name) => name.startsWith('loop'));
  const files = devices.map((name) => readFile(`/sys/block/${name}/loop/backing_file`, 'utf8').catch(() => ''));
  return (await Promise.all(files)).filter((file) => file.startsWith(`${home}/`));
}

const branch = 'projects/wild-bird-1/branches/br-one-2/pgdata';
const read = (root: string) => readFile(join(root, branch, 'base'), 'utf8');

/** A home as Catnap leaves it, with one branch. */
async function makeData(): Promise<void> {
  await ensureHome(place.config);
  await mkdir(join(home, branch), { recursive: true });
  await writeFile(join(home, branch, 'base'), 'rows', { mode: 0o600 });
  await chown(join(home, branch, 'base'), 701_234, 701_234);
}

test.skipIf(asRoot)('without root it says what to do, and changes nothing', async () => {
  expect(whyNoStorage()).toMatch(/only root can mount/);
  await expect(planStorage(place.config, bytes)).rejects.toThrow(/only root can mount/);
  expect(existsSync(join(home, 'storage.img'))).toBe(false);
});

describe.skipIf(problem !== null || (await detectCloneMethod('/tmp')) === 'reflink')('a storage image', () => {
  test('takes everything in, is where the data is from then on, and can share blocks', async () => {
    await makeData();
    expect(await planStorage(place.config, bytes)).toMatchObject({ bytes, projects: 1 });
    expect(await storageStatus(place.config)).toMatchObject({ method: 'copy', purgeBytes: null });
    const said: string[] = [];
    await createStorage(place.config, bytes, (line) => said.push(line));
    expect(said.join('\n')).toMatch(/made .*storage\.img[\s\S]*copying .*projects[\s\S]*everything is in the image/);
    expect(existsSync(join(home, 'projects'))).toBe(false);
    const layout = await ensureHome(place.config);
    expect(layout.root).toBe(join(home, 'storage'));
    expect(await read(layout.root)).toBe('rows');
    expect(await lstat(join(layout.root, branch, 'base'))).toMatchObject({ uid: 701_234, gid: 701_234 });
    expect((await lstat(join(home, 'storage.img'))).blocks * 512).toBeLessThan(bytes / 4);
    await mkdir(join(layout.root, 'history/wild-bird-1/h1/log'), { recursive: true });
    await writeFile(join(layout.root, 'history/wild-bird-1/h1/log/segment'), 'x'.repeat(8192), { flush: true });
    // A history that continues another has the same files, and one that begins with the template has the template's.
    await mkdir(join(layout.root, 'history/wild-bird-1/h2/log'), { recursive: true });
    const segment = join(layout.root, 'history/wild-bird-1/h1/log/segment');
    await link(segment, join(layout.root, 'history/wild-bird-1/h2/log/segment'));
    await writeFile(join(layout.root, 'of-the-template'), 'x'.repeat(8192), { flush: true });
    await link(join(layout.root, 'of-the-template'), join(layout.root, 'history/wild-bird-1/h2/file'));
    // Of a branch that is deleted, without its history: that is another one's.
    const [, project = '', , deleted = ''] = branch.split('/');
    const status = await storageStatus(place.config, async () => [{ project, branch: deleted }]);
    expect(status).toMatchObject({ historyBytes: 8192, historyBytesOnDisk: 8192 });
    expect(status.purgeBytes).toBe(status.branches?.[0]?.bytes);
    expect(status.purgeBytes).toBeGreaterThan(0);
    expect(status).toMatchObject({ method: 'reflink', path: layout.root, isAway: false, image: { bytes } });
    expect(status.branches).toMatchObject([{ project: 'wild-bird-1', branch: 'br-one-2', bytes: 4096, shared: 0 }]);
    await expect(planStorage(place.config, bytes)).rejects.toThrow(/has a storage image already/);
  });

  test('is mounted again at the next start; without its file nothing starts and nothing is lost', async () => {
    await makeData();
    await createStorage(place.config, bytes, ignore);
    await unmountUnder(home);
    expect(await storageStatus(place.config)).toMatchObject({ isAway: true });
    const image = join(home, 'storage.img');
    await rename(image, `${image}.away`);
    await expect(ensureHome(place.config)).rejects.toThrow(/storage\.img is missing.*put it back/);
    expect(existsSync(join(home, 'projects'))).toBe(false);
    await writeFile(image, 'not a filesystem');
    await expect(ensureHome(place.config)).rejects.toThrow(/could not be mounted; nothing was changed/);
    await rename(`${image}.away`, image);
    expect(await read((await ensureHome(place.config)).root)).toBe('rows');
  });

  test('grows, and is left again, as docs/storage.md says', async () => {
    await makeData();
    await createStorage(place.config, bytes, ignore);
    const sh = (script: string) =>
      runProgram('sh', ['-ec', `export PATH=$PATH:/usr/sbin:/sbin; cd ${home}; ${script}`]);
    await sh(`truncate -s 1G storage.img; losetup -c $(findmnt -no SOURCE ${home}/storage); xfs_growfs storage`);
    const grown = await storageStatus(place.config);
    expect(grown.image?.bytes).toBe(1024 ** 3);
    expect(grown.bytesUsed + grown.bytesFree).toBeGreaterThan(0.8 * 1024 ** 3);
    await sh('cp -a storage/projects storage/templates .; rm storage.json; umount storage; rm -r storage storage.img');
    const layout = await ensureHome(place.config);
    expect(layout.root).toBe(home);
    expect(await read(home)).toBe('rows');
  });

  test('that is not the one of this home is refused', async () => {
    await createStorage(place.config, bytes, ignore);
    const record = await readFile(join(home, 'storage.json'), 'utf8');
    await writeFile(join(home, 'storage.json'), record.replace(/"id":"../, '"id":"xx'));
    await expect(ensureHome(place.config)).rejects.toThrow(/not the storage that storage.json names/);
  });

  test('whose making was cut off does not count, and the next attempt begins anew', async () => {
    await makeData();
    await makeStorage(home, bytes);
    const layout = await ensureHome(place.config);
    expect(layout.root).toBe(home);
    expect(await read(home)).toBe('rows');
    const said: string[] = [];
    await createStorage(place.config, bytes, (line) => said.push(line));
    expect(said[0]).toMatch(/never finished is removed/);
    expect(await read(join(home, 'storage'))).toBe('rows');
  });

  test('whose making was cut off before the old place was cleared is finished by the next start', async () => {
    await makeData();
    const record = await makeStorage(home, bytes);
    await cp(join(home, 'projects'), join(home, 'storage', 'projects'), { recursive: true });
    await commitStorage(home, record);
    expect(await read(home)).toBe('rows');
    const layout = await ensureHome(place.config);
    expect(await read(layout.root)).toBe('rows');
    expect(existsSync(join(home, 'projects'))).toBe(false);
    expect(await readStorageRecord(home)).toMatchObject({ state: 'ready' });
  });

  test('that cannot be filled goes away again, and the data stay where they were', async () => {
    await makeData();
    await writeFile(join(home, branch, 'big'), Buffer.alloc(430 * 1024 ** 2, 1));
    await expect(planStorage(place.config, bytes)).rejects.toThrow(/--size is too small: 451 MB/);
    // Left out of the plan, like a file that grows after the plan was made.
    await writeFile(join(home, branch, 'big'), '');
    const creating = createStorage(place.config, bytes, (line) => {
      if (line.startsWith('made ')) writeFileSync(join(home, branch, 'big'), Buffer.alloc(600 * 1024 ** 2, 1));
    });
    await expect(creating).rejects.toThrow(/No space left on device/);
    expect(existsSync(join(home, 'storage.img'))).toBe(false);
    expect(await mountsUnder(home)).toEqual([]);
    expect(await read(home)).toBe('rows');
  });

  test('is not made while Catnap runs, nor without room for it', async () => {
    await ensureHome(place.config);
    const lock = await takeInstanceLock(join(home, 'catnap.sock'), home);
    await expect(createStorage(place.config, bytes, ignore)).rejects.toThrow(/another Catnap is running/);
    await lock.release();
    await expect(createStorage(place.config, 2 ** 52, ignore)).rejects.toThrow(/more than the .* that are free/);
    await expect(createStorage(place.config, bytes - 1, ignore)).rejects.toThrow(/at least 512M/);
    expect(existsSync(join(home, 'storage.img'))).toBe(false);
  });
});
