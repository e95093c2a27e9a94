import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FakeDriver } from '../../../src/compute/fake/fake-driver.ts';
import type { ComputeSpec } from '../../../src/compute/interface/driver.ts';
import { addCampaign, nothingPlayed, runCampaign, seedOf } from './campaign.ts';
import { noCounts } from './counts.ts';
import { Ground } from './ground.ts';
import { runInProcesses } from './processes.ts';
import { quickenTimers } from './quick-timers.ts';
import { describeMoves, play, playMoves, playSeed, type Source, shorten } from './schedule.ts';
import { Stages, schedulesPerStage } from './stage.ts';

let ground: Ground;
let slowDown: () => void;

beforeAll(async () => {
  slowDown = quickenTimers();
  ground = await Ground.open();
});
afterAll(async () => {
  await ground.close();
  slowDown();
});

describe('schedules of the operation queue', () => {
  it('break no rule, in as many processes as they are played', async () => {
    const { schedules, findings, counts } = await runInProcesses(
      2,
      { seed: 17, count: schedulesPerStage + 2, grounds: 1 },
      () => {},
    );
    expect(findings.map(({ text }) => text)).toEqual([]);
    expect(schedules).toBe(schedulesPerStage + 2);
    expect(counts.operations).toBeGreaterThan(schedulesPerStage);
  });

  it('are counted together, and what several processes have found is told once', () => {
    const total = nothingPlayed();
    const finding = { violation: 'a rule', seed: 7, times: 2, text: 'a rule: w1' };
    const endings = { start_compute: { finished: 3 } };
    for (const seed of [7, 8]) {
      const findings = [{ ...finding, seed }];
      addCampaign(total, { schedules: 10, counts: { ...noCounts(), moves: 5 }, endings, findings });
    }
    expect(total).toEqual({
      schedules: 20,
      counts: { ...noCounts(), moves: 10 },
      endings: { start_compute: { finished: 6 } },
      findings: [{ ...finding, times: 4 }],
    });
  });

  it('go on after one that could not be played, which is told', async () => {
    let made = 0;
    const makeDriver = (world: ConstructorParameters<typeof FakeDriver>[0]) => {
      if (++made === 2) throw new Error('out of order');
      return new FakeDriver(world);
    };
    const { schedules, findings } = await runCampaign({ seed: 17, count: 3, grounds: 1, makeDriver });
    expect(schedules).toBe(2);
    expect(findings).toMatchObject([{ violation: 'a schedule could not be played', text: 'out of order' }]);
  });

  it('are the same for the same seed, whatever was played on their stage before', async () => {
    let moves = 0;
    for (const index of [2, schedulesPerStage + 1, 2 * schedulesPerStage + 3]) {
      const [before, seed] = [seedOf(17, index - 1), seedOf(17, index)];
      const stages = new Stages(ground);
      await playSeed(stages, before);
      const [one, again] = [await playSeed(stages, seed), await playSeed(new Stages(ground), seed)];
      expect(again.trace).toEqual(one.trace);
      moves += one.counts.moves;
      expect((await playMoves(ground, one.moves)).trace).toEqual(one.trace);
    }
    expect(moves).toBeGreaterThan(60);
  });
});

/** Forgets which starts are older than others. */
class ForgetfulDriver extends FakeDriver {
  override start(spec: ComputeSpec) {
    const compute = this.computes.get(spec.endpointId);
    if (compute !== undefined) compute.generation = 0;
    return super.start(spec);
  }
}

/** A worker stops in the middle of a start, another takes it over and restarts the server, then the first goes on. */
const takenOver: Source = ({ actors, idle }) => {
  const [first, second, client] = [actors.get('w1'), actors.get('w2'), actors.get('c1')];
  if (first?.isStalled !== true) return first?.gates[0]?.label === 'driver.start' ? 'w1 stall' : 'w1';
  if (second?.isDone === false || !idle.has('w2')) return 'w2';
  if (client === undefined) return 'c1 restart 0 0';
  return client.isDone ? null : 'c1';
};

/** A worker is about to send two statements at once, the first of which has to wait for what a command has locked. */
function lockOut(): Source {
  const staging = ['settle', 'c2 suspend 0 0'];
  return ({ actors }) => {
    const staged = staging.shift();
    if (staged !== undefined) return staged;
    const [worker, client, other] = [actors.get('w1'), actors.get('c1'), actors.get('c2')];
    if (other?.isDone === false) return 'c2';
    if (worker?.isInTransaction !== true) return worker?.isDone === false ? 'w1 step' : 'w1';
    if (client === undefined) return 'c1 createRole 0 0';
    return client.gates[0]?.label === 'commit' ? null : 'c1 step';
  };
}

it('statements that wait together for one lock do not hold a schedule up', async () => {
  const { violations, trace } = await play(ground, lockOut());
  expect(trace.at(-1)).toBe('c1 step -> commit');
  expect(violations).toEqual([]);
});

it('nor do they over connections that have not carried any of them before', async () => {
  const fresh = await Ground.open();
  try {
    expect((await play(fresh, lockOut())).violations).toEqual([]);
  } finally {
    await fresh.close();
  }
});

/** The server refuses a rename. */
function refuseRename(): Source {
  const staging = ['settle', 'c1 createDatabase 0 0', 'settle', 'c1 renameDatabase 0 0', 'c1', 'c1'];
  return ({ actors }) => {
    const staged = staging.shift();
    if (staged !== undefined) return staged;
    const worker = actors.get('w1');
    if (worker?.isDone === true) return null;
    return worker?.gates[0]?.label === 'driver.configure' ? 'w1 refuse' : 'w1';
  };
}

it('a rename that a server refuses is taken back', async () => {
  const { violations, moves, endings } = await play(ground, refuseRename());
  expect(moves).toContain('w1 refuse');
  expect(endings).toContainEqual({ job: 'apply_config', status: 'error' });
  expect(violations).toEqual([]);
});

it('what waits for a compute may go on waiting when one is moved there asleep', async () => {
  const moves = ['c1 createBranch 0 0', 'settle', 'c1 createDatabase 1 0', 'settle', 'c1 move 0 1'];
  expect((await playMoves(ground, moves)).violations).toEqual([]);
});

it.each([
  ['the compute of a restored snapshot begins asleep', ['c2 restoreSnapshot 2 6']],
  ['a restore in place brings one asleep', ['c1 suspend 0 0', 'c1', 'c1', 'c1 restoreSnapshotInPlace 5 4']],
])('nor is it applied where %s', async (_, moves) => {
  const waiting = 'c1 createBranch 1 0 / settle / c1 createRole 3 0 / settle / c1 takeSnapshot 3 5 / settle';
  expect((await playMoves(ground, [...waiting.split(' / '), ...moves])).violations).toEqual([]);
});

it('what was pending on the source of a restore waits for the next start of a compute that sleeps', async () => {
  const moves = 'c1 createBranch 5 7 / settle / c1 suspend 1 4 / settle / c2 restore 3 4 / c2 / c1 resetPassword 1 6';
  expect((await playMoves(ground, moves.split(' / '))).violations).toEqual([]);
});

it('a compute on its way to a branch is not asked what that branch holds', async () => {
  const moves = ['c1 createBranch 1 0', 'settle', 'c1 createRole 0 0', 'settle', 'c1 createBranch 1 1', 'c1', 'c1'];
  const { violations, trace } = await playMoves(ground, [...moves, 'c1 move 0 1', 'c1']);
  expect(trace.at(-1)).toBe('c1 -> commit');
  expect(violations).toEqual([]);
});

it('a suspend that was asked for before a move records what it finds for the branch that was served', async () => {
  const moves = ['c1 createBranch 1 0', 'settle', 'c1 createRole 0 0', 'settle', 'c1 disable 0 0', 'c1', 'c1'];
  const { violations, trace } = await playMoves(ground, [...moves, 'c1 move 0 1', 'c1']);
  expect(trace.at(-1)).toBe('c1 -> commit');
  expect(violations).toEqual([]);
});

it('a suspend that comes after its compute was moved by a restore records what it finds for the branch that is served', async () => {
  const moves =
    'c1 takeSnapshot 2 7 / settle / c1 createRole 3 3 / settle / c1 recoverBranch 7 5 / c1 / c2 suspend 1 0 / ' +
    'c1 restoreSnapshotInPlace 5 5';
  expect((await playMoves(ground, moves.split(' / '))).violations).toEqual([]);
});

it('a database that is to be dropped is nothing new while the server still has it', async () => {
  const moves =
    'c1 createDatabase 6 3 / settle / c1 replicateLogically 2 5 / w1 / c2 createBranch 5 3 / c2 / c2 / w1 / ' +
    'w1 / w1 / w1 / c1 / c2 deleteDatabase 4 4 / w1 / c1 / c2 / c2 / w1 / c2 deleteDatabase 4 3 / w1 / w1 / ' +
    'w1 / w1 / w1 / w1 / w1 / w1 / kill 0';
  expect((await playMoves(ground, moves.split(' / '))).violations).toEqual([]);
});

it('a restart that is given up after an unheard commit leaves no compute about to be active', async () => {
  const moves =
    'settle / c1 setMaxConnections 4 7 / c1 / c1 / w2 / w2 / time 310000 / w2 / w2 / w2 / w2 / w2 / w2 / w2 / ' +
    'w2 / w2 / w2 / w2 / w2 / w2 / w2 / w2 / w2 / w2 / w2 / w2 / w2 / w2 / w2 after';
  expect((await playMoves(ground, moves.split(' / '))).violations).toEqual([]);
});

/** Each of them was found by chance, and broke a rule before what it shows was mended. */
it.each([
  [
    'a branch holds what its parent had carried out before it was copied, though more is pending there by then',
    'w1 / w2 / c1 createBranch 0 0 / c1 / c1 / c1 resetPassword 6 5',
  ],
  [
    'what a first start was refused has an operation that says so',
    `w2 / w1 / w2 / w2 / w1 / w2 / w2 / w2 / w2 / ${'w1 / '.repeat(13)}w1 refuse`,
  ],
  [
    'a branch and its parent, both on their way out, go in any order',
    'c1 createBranch 6 7 / settle / c1 createBranch 7 5 / settle / w2 / c2 deleteBranchForGood 2 5 / c2 / c2 / ' +
      `c2 deleteBranchForGood 4 6 / w2 / c2 / c2${' / w1'.repeat(12)}`,
  ],
  [
    'a database that was dropped by an operation that was given up is not shown again',
    `c1 createDatabase 0 2 / settle / c2 deleteDatabase 0 4 / c2 / w1 / c2 / ${'w1 / '.repeat(18)}` +
      'time 700000 / w1 / w1 lose',
  ],
  [
    'a start that comes late to a deleted compute leaves no server',
    `w2 / w2 / w2 / w2 / c1 deleteProject 4 0 / w2 / w2 / w1 / w2 / ${'w1 / '.repeat(6)}w1 stall`,
  ],
  [
    'a branch that is copied asleep holds the password that a newer one is pending for',
    'c2 disable 5 0 / c2 / c2 / w2 / w2 / w2 / w2 / c1 createSchemaOnlyBranch 6 0 / w2 / w2 / w2 / c1 / ' +
      `${'w1 / '.repeat(9)}c2 resetPassword 7 1`,
  ],
  [
    'what a server was seen to hold is not pending any more, though the start that made it was given up',
    'w2 / w2 / c2 takeSnapshot 4 6 / c2 / c2 / c2 restoreSnapshot 5 0 / c2 / c2 / w2 / w2 / time 700000 / ' +
      `${'w2 / '.repeat(18)}w2 lose`,
  ],
  [
    'a branch that never got its data is not taken for ready after a restore in its place',
    'w1 / w1 / w1 / c1 takeSnapshot 5 2 / w1 / c1 / c1 / c1 restoreSnapshotInPlace 2 1 / w1 full',
  ],
  [
    'a worker that is late has nothing to say of what a server held before a restore',
    'c1 createBranch 2 5 / settle / c1 createDatabase 1 3 / settle / w1 / c1 restoreAndKeep 2 7 / c1 / c1 / ' +
      `${'w1 / '.repeat(40)}w1 stall`,
  ],
  [
    'a database that got another name than the one it had when its branch was copied is in the copy under that name',
    'c1 createDatabase 7 0 / settle / c1 renameDatabase 2 6 / c1 / c1 / c1 createSchemaOnlyBranch 6 6 / c1 / c1 / ' +
      'c1 renameDatabase 3 6',
  ],
  [
    'a start that comes late to a compute that was removed leaves no server',
    'w2 / w2 / w2 / w2 / w2 / w1 / w2 / w2 / w1 / w1 / w1 / w1 / w1 / w1 / w1 stall / c2 deleteEndpoint 6 5',
  ],
  [
    'what an operation on the first of three branches could not say is excused on the third',
    'c1 createSchemaOnlyBranch 5 3 / c1 / w2 / w2 / w2 / w2 / c1 takeSnapshot 1 6 / w2 / c2 deleteEndpoint 6 6 / ' +
      `w2 / w2${' / w1'.repeat(8)} / c2 / c2 / c2 createSchemaOnlyBranch 3 0${' / w1'.repeat(6)} / kill 3`,
  ],
])('%s', async (_, moves) => {
  expect((await playMoves(ground, moves.split(' / '))).violations).toEqual([]);
});

/** A reconciler crashes after it has seen an operation that a worker is busy with. */
const bystander: Source = ({ actors, driver }) => {
  const [reconciler, second] = [actors.get('r1'), actors.get('w2')];
  if (![...driver.computes.values()].some(({ process }) => process !== null)) return 'w1';
  if (reconciler === undefined) return 'r1 stray-computes';
  if (!reconciler.isDone) return reconciler.gates[0]?.label === 'commit' ? 'r1 crash' : 'r1';
  return second?.isDone === true ? null : 'w2';
};

it('a crash takes no lease away from those who go on', async () => {
  const { violations, moves } = await play(ground, bystander);
  expect(moves).toContain('r1 crash');
  expect(violations).toEqual([]);
});

it('a branch that is asked for before its parent has its roles keeps none of them as pending', async () => {
  expect((await playMoves(ground, ['c1 createBranch 0 0'])).violations).toEqual([]);
});

it('what was found is told in as few moves as show it', async () => {
  const moves = Array.from({ length: 40 }, (_, index) => `w${index}`);
  const needed = ['w3', 'w17', 'w18', 'w39'];
  const isEnough = async (some: readonly string[]) => needed.every((move) => some.includes(move));
  expect(await shorten(moves, isEnough)).toEqual(needed);
});

describe('a driver that lets a late start pass', () => {
  const options = { makeDriver: () => new ForgetfulDriver() };
  const violation = 'a server runs under an old generation';

  it('is found', async () => {
    const { moves, violations } = await play(ground, takenOver, options);
    expect(violations).toEqual([violation]);
    expect((await playMoves(ground, moves, options)).violations).toEqual([violation]);
    expect(describeMoves(moves, violation)).toContain("    'w1 stall',\n");
  });

  it('is what was found: the driver as it is refuses it', async () => {
    expect((await play(ground, takenOver)).violations).toEqual([]);
  });
});
