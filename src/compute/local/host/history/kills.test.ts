/**
 * A kill of Catnap at every change that it makes to the files of a history. From that change on nothing is written any
 * more, the cleaning up of failures included; then a new start goes on with what is there.
 */
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, open, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, test, vi } from 'vitest';
import { chooseHomesFolder } from '../../../../../test/helpers/homes-folder.ts';
import { newBranchId, newProjectId } from '../../../../lib/ids.ts';
import { KeyedLock } from '../../../../lib/keyed-lock.ts';
import { lsnBytes, lsnText } from '../../../../lib/moments.ts';
import { createLayout, dataDirectory, type Layout } from '../home/layout.ts';
import type { BranchPast } from '../home/records.ts';
import { parseSegment, segmentBytes, segmentName } from '../postgres/wal-segments.ts';
import type { Histories } from './histories.ts';
import { planRecovery } from './plan.ts';

const kill = vi.hoisted(() => {
  const state = { left: Number.POSITIVE_INFINITY, isDead: false, changes: 0 };
  const guarded = <A extends unknown[], R>(
    change: (...given: A) => R,
    isChange: (...given: A) => boolean = () => true,
  ) => {
    return (...given: A): R => {
      if (isChange(...given)) {
        state.changes += 1;
        if (state.changes > state.left) state.isDead = true;
        if (state.isDead) throw Object.assign(new Error('killed'), { code: 'KILLED' });
      }
      return change(...given);
    };
  };
  return { state, guarded };
});

vi.mock('node:fs/promises', async (load) => {
  const real = await load<typeof import('node:fs/promises')>();
  const { guarded } = kill;
  const { appendFile, copyFile, link, mkdir: make, rename, rm: remove, writeFile: write } = real;
  const guardedOpen = guarded(real.open, (_, flags) => flags !== 'r' && (Number(flags) & 3) !== 0);
  const changes = { appendFile, copyFile, link, mkdir: make, rename, rm: remove, writeFile: write };
  const all = Object.entries(changes).map(([name, change]) => [name, asAsync(guarded(change as () => unknown))]);
  return { ...real, ...Object.fromEntries(all), open: asAsync(guardedOpen) };
  function asAsync<A extends unknown[]>(change: (...given: A) => unknown) {
    return async (...given: A) => change(...given);
  }
});

vi.mock('node:fs', async (load) => {
  const real = await load<typeof import('node:fs')>();
  const { guarded } = kill;
  const { mkdirSync, renameSync, writeFileSync } = real;
  return {
    ...real,
    mkdirSync: guarded(mkdirSync),
    renameSync: guarded(renameSync),
    writeFileSync: guarded(writeFileSync),
  };
});

/** A segment of log is reason enough for a base image. */
vi.mock('./policy.ts', async (load) => {
  const real = await load<typeof import('./policy.ts')>();
  const isBaseDue: typeof real.isBaseDue = (question) =>
    real.isBaseDue({ ...question, isShared: true, isAwake: false });
  return { ...real, isBaseDue };
});

// What other test files of this process have loaded knows nothing of kills, and what is loaded here is not for them.
vi.resetModules();
const { readBranchRecord, writeBranchRecord } = await import('../home/records.ts');
const { TenantDirectories } = await import('../home/tenant-directories.ts');
const { baseCopies } = await import('./bases.ts');
const { historyPaths, readFacts } = await import('./files.ts');
const { Histories: LoadedHistories } = await import('./histories.ts');
const { removeLostHistories } = await import('./leftovers.ts');
afterAll(() => {
  for (const path of ['node:fs/promises', 'node:fs', './policy.ts']) vi.doUnmock(path);
  vi.resetModules();
});

/** As `global/pg_control` of a server that was shut down there. */
function controlFile(checkpoint: bigint): Buffer {
  const bytes = Buffer.alloc(8_192);
  bytes.writeUInt32LE(1, 16);
  bytes.writeBigInt64LE(BigInt(Math.floor(Date.now() / 1_000) - 60), 24);
  bytes.writeBigUInt64LE(checkpoint, 32);
  bytes.writeBigUInt64LE(checkpoint, 40);
  bytes.writeUInt32LE(1, 48);
  return bytes;
}

/** Longer than any base image takes here. */
const waitMs = 300_000;
const megabyte = 1024n ** 2n;
const daySeconds = 86_400;
const folder = chooseHomesFolder();
const homes: string[] = [];
afterEach(async () => {
  Object.assign(kill.state, { left: Number.POSITIVE_INFINITY, isDead: false });
  for (const home of homes.splice(0)) await rm(home, { recursive: true, force: true });
});

class Machine {
  readonly layout: Layout;
  readonly projectId = newProjectId();
  readonly branchId = newBranchId();

  constructor(home: string) {
    this.layout = createLayout(home);
  }

  /** As a new start of Catnap would make it. */
  async histories(): Promise<Histories> {
    const { layout } = this;
    await removeLostHistories(layout);
    const tenants = new TenantDirectories(layout, null);
    const copies = { ...baseCopies, waitMs };
    return new LoadedHistories({ layout, tenants, locks: new KeyedLock(), uids: null, copies });
  }

  ref(branchId = this.branchId) {
    return { projectId: this.projectId, branchId, tenantUid: null };
  }

  data(branchId = this.branchId): string {
    return dataDirectory(this.layout.branch(this.projectId, branchId));
  }

  async addBranch(past: Partial<BranchPast> = {}, branchId = this.branchId): Promise<void> {
    const data = this.data(branchId);
    for (const folder of ['global', 'pg_wal', 'base']) await mkdir(join(data, folder), { recursive: true });
    await writeFile(join(data, 'PG_VERSION'), '17');
    await writeFile(join(data, 'base', 'table'), randomBytes(64));
    const receipt = { method: 'copy', lsn: null, durationMs: 0, bytes: 0, bytesShared: 0 } as const;
    const made = {
      historyId: randomBytes(8).toString('hex'),
      madeAt: new Date().toISOString(),
      template: null,
      ...past,
    };
    await writeBranchRecord(this.layout.branch(this.projectId, branchId), { pgVersion: 17, receipt, past: made });
  }

  /** The log has reached this position, and its server was shut down there. */
  async write(position: bigint, branchId = this.branchId): Promise<void> {
    const data = this.data(branchId);
    for (let at = 1n; at <= position / segmentBytes; at++) {
      const path = join(data, 'pg_wal', segmentName(1, Number(at)));
      if (existsSync(path)) continue;
      const header = Buffer.concat([Buffer.alloc(8), Buffer.alloc(8), randomBytes(32)]);
      header.writeBigUInt64LE(at * segmentBytes, 8);
      const handle = await open(path, 'w');
      await handle.write(header);
      await handle.truncate(Number(segmentBytes));
      await handle.close();
    }
    await writeFile(join(data, 'global', 'pg_control'), controlFile(position));
  }

  async paths(branchId = this.branchId) {
    const record = await readBranchRecord(this.layout.branch(this.projectId, branchId));
    return historyPaths(this.layout.history(this.projectId, record?.past?.historyId ?? ''));
  }
}

async function makeMachine(): Promise<Machine> {
  const home = join(folder, `catnap-kills-${randomBytes(6).toString('hex')}`);
  homes.push(home);
  const machine = new Machine(home);
  for (const folder of [machine.layout.trash, machine.layout.work, machine.layout.histories]) {
    await mkdir(folder, { recursive: true });
  }
  return machine;
}

/** What was written to a segment, at its beginning; reading the zeros behind it would take long. */
async function written(path: string): Promise<Buffer> {
  const handle = await open(path, 'r');
  const bytes = Buffer.alloc(64);
  await handle.read(bytes, 0, bytes.length, 0);
  await handle.close();
  return bytes;
}

/** Every base image leads to the end of the log, byte for byte, and nothing is half made. */
async function requireWhole(machine: Machine, branchId = machine.branchId): Promise<void> {
  const paths = await machine.paths(branchId);
  const facts = await readFacts(paths);
  if (facts?.state.copied == null) throw new Error('there is no history');
  const { state, bases } = facts;
  expect(state.gaps).toEqual([]);
  expect(bases.length).toBeGreaterThan(0);
  const plan = planRecovery(facts, { kind: 'time', at: '9999-01-01T00:00:00Z' });
  for (const base of bases) {
    const table = await readFile(join(paths.bases, base.name, 'pgdata', 'base', 'table'));
    expect(table).toHaveLength(64);
  }
  const copied = lsnBytes(facts.state.copied.lsn);
  for (const name of plan.segments) {
    const begin = BigInt(parseSegment(name).at) * segmentBytes;
    const bytes = Number(copied - begin < segmentBytes ? copied - begin : segmentBytes);
    const [here, there] = [join(paths.log, name), join(machine.data(branchId), 'pg_wal', name)];
    expect((await stat(here)).size).toBeGreaterThanOrEqual(bytes);
    expect(await written(here)).toEqual(await written(there));
  }
  const names = await readdir(paths.bases);
  expect(names.filter((name) => name.startsWith('.'))).toEqual([]);
  expect(names).toHaveLength(bases.length);
}

interface Scenario {
  readonly prepare: (machine: Machine) => Promise<void>;
  readonly branchId?: (machine: Machine) => ReturnType<typeof newBranchId>;
  readonly retentionSeconds?: number;
  readonly baseCount: number;
}

const first = 20n * megabyte;
const childId = newBranchId();
const turn = async (machine: Machine, branchId = machine.branchId, retentionSeconds = daySeconds) =>
  (await machine.histories()).turn(machine.ref(branchId), { retentionSeconds });

const scenarios: Record<string, Scenario> = {
  'the first base image': {
    prepare: (machine) => machine.addBranch().then(() => machine.write(first)),
    baseCount: 1,
  },
  'a copy of the log': {
    prepare: async (machine) => {
      await machine.addBranch();
      await machine.write(first);
      await turn(machine);
      await machine.write(first + 15n * megabyte);
    },
    baseCount: 1,
  },
  'another base image': {
    prepare: async (machine) => {
      await machine.addBranch();
      await machine.write(first);
      await turn(machine);
      await machine.write(first + 17n * megabyte);
    },
    baseCount: 2,
  },
  'giving up what is old': {
    prepare: async (machine) => {
      await machine.addBranch();
      await machine.write(first);
      await turn(machine);
      await machine.write(first + 17n * megabyte);
      await turn(machine);
    },
    retentionSeconds: 1,
    baseCount: 1,
  },
  "the continuation of a parent's history": {
    prepare: async (machine) => {
      await machine.addBranch();
      await machine.write(first);
      await turn(machine);
      await machine.write(first + 13n * megabyte);
      const parent = await readBranchRecord(machine.layout.branch(machine.projectId, machine.branchId));
      const historyId = parent?.past?.historyId ?? '';
      const until = lsnText(first + 13n * megabyte);
      const past = { branchId: machine.branchId, historyId, timeline: 1, until };
      await machine.addBranch({ parent: past }, childId);
      for (const name of await readdir(join(machine.data(), 'pg_wal'))) {
        const path = join(machine.data(childId), 'pg_wal', name);
        await writeFile(path, await written(join(machine.data(), 'pg_wal', name)));
        await truncate(path, Number(segmentBytes));
      }
      await machine.write(first + 15n * megabyte, childId);
    },
    branchId: () => childId,
    baseCount: 1,
  },
};

describe('a kill of Catnap at every change of', () => {
  test.each(Object.entries(scenarios))(
    '%s leaves what the next start completes',
    async (_, scenario) => {
      const { prepare, retentionSeconds, baseCount } = scenario;
      let isOver = false;
      let at = 0;
      for (; !isOver; at++) {
        const machine = await makeMachine();
        const branchId = scenario.branchId?.(machine) ?? machine.branchId;
        await prepare(machine);
        Object.assign(kill.state, { left: at, changes: 0, isDead: false });
        const killed = await turn(machine, branchId, retentionSeconds).catch((error: NodeJS.ErrnoException) => {
          if (error.code !== 'KILLED') throw error;
          return 'killed' as const;
        });
        isOver = !kill.state.isDead;
        Object.assign(kill.state, { left: Number.POSITIVE_INFINITY, isDead: false });
        if (isOver) expect(killed).toMatchObject({ history: { baseCount } });
        // What was only being removed may be complete enough to go on; nothing else is.
        const after = await turn(machine, branchId, retentionSeconds);
        expect(after?.history).toMatchObject({ baseCount, gaps: [] });
        await requireWhole(machine, branchId);
        await rm(machine.layout.home, { recursive: true });
      }
      expect(at).toBeGreaterThan(3);
    },
    600_000,
  );
});
