import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, closeSync, constants, openSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../../../../../test/helpers/eventually.ts';
import { enteringShell } from './entering-shell.ts';
import { openTree, parseMounts, parseOwnGroups } from './locations.ts';
import { type CgroupTree, readKeyed } from './tree.ts';
import { CgroupTreeV2 } from './v2.ts';

/** A directory that looks like the kernel's: its files are those of a Linux 6 with only version 2. */
let root: string;
const endpointId = 'ep-quiet-moon-12345678';
const gib = 1024 ** 3;
const limits = { cpus: 0.25, memoryBytes: gib, processes: 200, mayGrow: true };

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'cn-cgroup-'));
  await mkdir(join(root, 'service'));
  await writeFile(join(root, 'service', 'cgroup.controllers'), 'cpuset cpu io memory hugetlb pids rdma\n');
  await writeFile(join(root, 'service', 'cgroup.subtree_control'), 'memory\n');
});

afterAll(() => rm(root, { recursive: true }));

const mountinfo = () => `31 24 0:27 / ${root} rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n`;
const file = (name: string) => readFile(join(root, 'service', 'catnap-x', endpointId, name), 'utf8');

function open(): CgroupTree {
  const tree = openTree('catnap-x', '0::/service\n', mountinfo());
  if ('problem' in tree) throw new Error(tree.problem);
  return tree;
}

test('a group is made below our own, with the controllers passed on', async () => {
  const tree = open();
  expect(tree.version).toBe(2);
  const folder = join(root, 'service', 'catnap-x');
  expect(tree.create(endpointId, { ...limits, cpus: null })).toEqual([join(folder, endpointId, 'cgroup.procs')]);
  expect(await readFile(join(root, 'service', 'cgroup.subtree_control'), 'utf8')).toBe('+cpu +memory +pids');
  expect(await readFile(join(folder, 'cgroup.subtree_control'), 'utf8')).toBe('+cpu +memory +pids');
  expect(await file('cpu.max')).toBe('max 100000');
  expect(await file('pids.max')).toBe('200');
  expect(await tree.names()).toEqual([endpointId]);
});

test('a size that may grow slows down at its limit; the largest has a wall there', async () => {
  const tree = open();
  await writeFile(join(root, 'service', 'catnap-x', endpointId, 'memory.stat'), stat);
  expect(await tree.setLimits(endpointId, limits)).toBe(true);
  expect(await file('cpu.max')).toBe('25000 100000');
  expect(await file('cpu.max.burst')).toBe('25000');
  expect(await file('cpu.weight')).toBe('25');
  expect([await file('memory.high'), await file('memory.max')]).toEqual([String(gib), String(1.25 * gib)]);
  expect(await tree.setLimits(endpointId, { ...limits, cpus: 2, memoryBytes: 8 * gib, mayGrow: false })).toBe(true);
  expect([await file('cpu.max'), await file('cpu.weight')]).toEqual(['200000 100000', '200']);
  expect([await file('memory.high'), await file('memory.max')]).toEqual(['max', String(8 * gib)]);
});

test('no limit goes below what is in use', async () => {
  const tree = open();
  const shrunk = { ...limits, memoryBytes: 256 * 1024 ** 2, mayGrow: false };
  expect(await tree.setLimits(endpointId, shrunk)).toBe(false);
  expect(Number(await file('memory.max'))).toBeGreaterThan(used);
});

test('counters are read as the kernel writes them', async () => {
  const tree = open();
  await tree.setLimits(endpointId, { ...limits, mayGrow: false });
  const folder = join(root, 'service', 'catnap-x', endpointId);
  await writeFile(
    join(folder, 'cpu.stat'),
    'usage_usec 2500000\nuser_usec 2000000\nsystem_usec 500000\nnr_periods 40\nnr_throttled 30\nthrottled_usec 9\n',
  );
  await writeFile(join(folder, 'memory.current'), '900000000\n');
  await writeFile(join(folder, 'memory.events'), 'low 0\nhigh 7\nmax 3\noom 1\noom_kill 2\noom_group_kill 0\n');
  expect(tree.read(endpointId)).toEqual({
    cpuSeconds: 2.5,
    periods: 40,
    throttledPeriods: 30,
    cpus: 0.25,
    memoryLimitBytes: gib,
    usedBytes: used,
    cacheBytes: 400_000_000,
    workingSetBytes: 150_000_000,
    refaultBytes: 10 * 4096,
    oomKills: 2,
    isPaused: false,
    waitsAtLimit: false,
  });
  expect(tree.read('ep-not-there-00000000')).toBeNull();
});

const used = 300_000_000 + 100_000_000 + 16_384 + 40_960 + 8_192;
const stat = `anon 300000000
file 500000000
kernel 9000000
kernel_stack 16384
pagetables 40960
percpu 8192
sock 0
shmem 100000000
inactive_file 250000000
active_file 150000000
workingset_refault_anon 5
workingset_refault_file 10
`;

test('where our own group cannot be divided, or was passed too little, the nearest above is', async () => {
  const group = async (path: string, controllers: string, passed: string) => {
    await mkdir(join(root, path), { recursive: true });
    await writeFile(join(root, path, 'cgroup.controllers'), `${controllers}\n`);
    await writeFile(join(root, path, 'cgroup.subtree_control'), `${passed}\n`);
  };
  await group('', 'cpuset cpu io memory pids', 'cpu memory pids');
  await group('user.slice', 'cpu memory pids', 'memory pids');
  await group('user.slice/poor.scope', 'memory pids', '');
  await group('user.slice/busy.scope', 'cpu memory pids', '');
  // The kernel would refuse it with EBUSY because of the processes in it.
  await rm(join(root, 'user.slice/busy.scope/cgroup.subtree_control'));
  await mkdir(join(root, 'user.slice/busy.scope/cgroup.subtree_control'));
  const passed = () => readFile(join(root, 'user.slice/cgroup.subtree_control'), 'utf8');
  for (const scope of ['poor.scope', 'busy.scope']) {
    const tree = openTree('catnap-y', `0::/user.slice/${scope}\n`, mountinfo());
    if ('problem' in tree) throw new Error(tree.problem);
    const [file] = tree.create(endpointId, limits);
    expect(file).toBe(join(root, 'user.slice/catnap-y', endpointId, 'cgroup.procs'));
    expect(await passed()).toBe('+cpu +memory +pids');
    // As a service manager may do while there is no compute.
    await group('user.slice', 'cpu memory pids', 'memory pids');
    tree.create(endpointId, limits);
    expect(await passed()).toBe('+cpu +memory +pids');
    await group('user.slice', 'cpu memory pids', 'memory pids');
  }
});

test('without the controllers, or without any mount, it is said why', () => {
  const nothing = openTree('catnap-x', '0::/service\n', '');
  expect(nothing).toMatchObject({ problem: expect.stringContaining('no control groups') });
});

test('mounts and own groups of a machine with both versions, and of a container', () => {
  const mounts = parseMounts(
    '29 26 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n' +
      '30 26 0:27 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n22 1 0:3 / /proc rw - proc proc rw\n',
  );
  expect(mounts).toEqual([
    { version: 2, root: '/', point: '/sys/fs/cgroup/unified', controllers: ['rw'] },
    { version: 1, root: '/docker/abc', point: '/sys/fs/cgroup/cpu,cpuacct', controllers: ['rw', 'cpu', 'cpuacct'] },
  ]);
  const own = parseOwnGroups('4:memory:/a:b\n2:cpu,cpuacct:/docker/abc\n1:name=systemd:/x\n0::/\n');
  expect(Object.fromEntries(own)).toEqual({
    memory: '/a:b',
    cpu: '/docker/abc',
    cpuacct: '/docker/abc',
    'name=systemd': '/x',
    '': '/',
  });
});

/** Where groups of version 2 can be made, even without the controllers that computes need. */
function realHierarchy(): string | null {
  const mounted = parseMounts(readFileSync('/proc/self/mountinfo', 'utf8')).find(({ version }) => version === 2);
  try {
    accessSync(join(mounted?.point ?? '', 'cgroup.procs'), constants.W_OK);
    return process.getuid?.() === 0 ? (mounted?.point ?? null) : null;
  } catch {
    return null;
  }
}

const hierarchy = realHierarchy();

test.skipIf(hierarchy === null)(
  'in a real hierarchy another uid enters by an open file, and keeps its group',
  async () => {
    const name = `catnap-test-${process.pid}`;
    const folder = join(hierarchy ?? '', name);
    await mkdir(folder);
    await mkdir(join(folder, endpointId));
    const tree = new CgroupTreeV2(folder);
    const fd = openSync(join(folder, endpointId, 'cgroup.procs'), 'w');
    const [shell = '', ...words] = enteringShell(1, 1, ['/bin/cat']);
    const server = spawn(shell, words, {
      cwd: '/',
      uid: 65_534,
      gid: 65_534,
      stdio: ['pipe', 'ignore', 'inherit', fd],
    });
    closeSync(fd);
    try {
      const group = async () => readFile(`/proc/${server.pid}/cgroup`, 'utf8');
      await eventually(async () => expect(await group()).toMatch(new RegExp(`^0::.*/${name}/${endpointId}$`, 'm')));
      expect(await tree.names()).toEqual([endpointId]);
      expect(await tree.remove(endpointId)).toBe(false);
      const used = readKeyed(await readFile(join(folder, endpointId, 'cpu.stat'), 'utf8'));
      expect(used('usage_usec')).toBeGreaterThan(0);
    } finally {
      server.kill('SIGKILL');
      await once(server, 'close');
      await eventually(async () => expect(await tree.remove(endpointId)).toBe(true));
    }
    expect(await tree.names()).toEqual([]);
  },
);
