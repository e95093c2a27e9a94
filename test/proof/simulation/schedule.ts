/**
 * Plays schedules: those that chance makes from a seed, and those that are written down. Also shortens one that has
 * found something, for as long as what is left still finds the same.
 */
import { createHash } from 'node:crypto';
import { FakeDriver } from '../../../src/compute/fake/fake-driver.ts';
import type { OperationRow } from '../../../src/db/operations.ts';
import { Random } from '../random.ts';
import type { Actor } from './actor.ts';
import { commands } from './commands.ts';
import type { Counts } from './counts.ts';
import { clientNames, type Ground, reconcilerName, workerNames } from './ground.ts';
import { findViolations, readRows } from './invariants.ts';
import { reconcilers } from './reconcilers.ts';
import { type Entrance, type PlayOptions, type Stages, subjects } from './stage.ts';
import { World } from './world.ts';

export interface Played {
  readonly moves: readonly string[];
  readonly violations: readonly string[];
  readonly counts: Counts;
  /** Of the operations that are still on record. */
  readonly endings: readonly Pick<OperationRow, 'job' | 'status'>[];
  /** Of everything that happened, in its order. */
  readonly hash: string;
  readonly trace: readonly string[];
}

/** Returns the next move, or null at the end. */
export type Source = (world: World) => string | null;

export async function play(ground: Ground, next: Source, options: PlayOptions = {}): Promise<Played> {
  const driver = options.makeDriver?.({}) ?? new FakeDriver();
  const world = new World(ground, { driver, known: await ground.prepare() }, options.registry);
  return playIn({ world, moves: [], ended: new Set() }, next);
}

/** Far more than chance makes; a schedule that waits for something that never comes would go on for ever. */
const refusalsMax = 10_000;

async function playIn({ world, moves: before, ended }: Entrance, next: Source): Promise<Played> {
  const moves = [...before];
  let refusals = 0;
  try {
    for (let move = next(world); move !== null; move = next(world)) {
      if (move === 'settle') await world.settle();
      else if (!(await world.make(move))) {
        if (++refusals > refusalsMax) throw new Error(`nobody can make these moves, ${move} for example`);
        continue;
      }
      moves.push(move);
    }
    await world.rest();
  } catch (error) {
    // The next schedule on this ground would wait for what these have locked.
    for (const actor of world.actors.values()) actor.crash();
    throw error;
  }
  const rows = await readRows(world);
  const violations = findViolations(world, rows);
  const endings = rows.operations.filter(({ id }) => !ended.has(id)).map(({ job, status }) => ({ job, status }));
  const hash = createHash('sha256').update(world.trace.join('\n')).digest('hex').slice(0, 16);
  return { moves, violations: [...new Set(violations)], counts: world.counts, endings, hash, trace: world.trace };
}

export function playMoves(ground: Ground, moves: readonly string[], options?: PlayOptions): Promise<Played> {
  const left = [...moves];
  return play(ground, () => left.shift() ?? null, options);
}

/** On a stage that the schedules before it may have set already. */
export async function playSeed(stages: Stages, seed: number): Promise<Played> {
  return playIn(await stages.enter(seed), chance(new Random(seed)));
}

/** Often asked for; the others come up now and then. */
const favourites = ['createBranch', 'start', 'suspend', 'wake', 'createRole', 'restore', 'deleteBranch', 'restart'];
const everyCommand = [...Object.keys(commands), 'wake', ...favourites];
const clockSteps = [120, 1_100, 10_500, 130_000, 310_000, 700_000];

/** A schedule of a few commands, which run into each other and into a few faults. */
function chance(random: Random): Source {
  let commandsLeft = random.between(2, 5);
  let faultsLeft = random.pick([0, 1, 1, 2, 3]);
  let movesLeft = random.between(20, 150);
  let last: string | null = null;

  const anyCommand = () => `${random.pick(everyCommand)} ${subjects(random)}`;

  const faultFor = (actor: Actor): string => {
    const isWorker = workerNames.some((name) => name === actor.name);
    const more = isWorker ? ['crash', ...(actor.lease === null || actor.isInTransaction ? [] : ['stall'])] : ['crash'];
    return random.pick([...(actor.gates[0]?.faults ?? []), ...more]);
  };

  const goOn = (actor: Actor): string => {
    last = actor.name;
    if (faultsLeft > 0 && random.chance(0.04)) {
      faultsLeft--;
      return `${actor.name} ${faultFor(actor)}`;
    }
    // The others would mostly wait for its locks.
    return actor.isInTransaction && random.chance(0.1) ? `${actor.name} step` : actor.name;
  };

  return (world) => {
    if (movesLeft-- === 0) return null;
    // A stalled actor mostly stays so until all others have ended.
    const waiting = world.waiting.filter(({ isAbsent }) => !isAbsent || random.chance(0.02));
    const current = waiting.find(({ name }) => name === last);
    if (current !== undefined && random.chance(0.5)) return goOn(current);
    const isFree = (name: string) => world.actors.get(name)?.isDone !== false;
    const choices: (() => string)[] = waiting.map((actor) => () => goOn(actor));
    for (const name of workerNames) if (isFree(name) && !world.idle.has(name)) choices.push(() => name);
    for (const name of clientNames) {
      if (!isFree(name) || commandsLeft === 0) continue;
      choices.push(() => {
        commandsLeft--;
        last = name;
        return `${name} ${anyCommand()}`;
      });
    }
    if (choices.length === 0 && commandsLeft === 0) return null;
    if (choices.length === 0 || random.chance(0.06)) choices.push(() => `time ${random.pick(clockSteps)}`);
    if (isFree(reconcilerName) && random.chance(0.15)) {
      choices.push(() => `${reconcilerName} ${random.pick(Object.keys(reconcilers))}`);
    }
    if (faultsLeft > 0 && random.chance(0.02)) {
      choices.push(() => {
        faultsLeft--;
        return `kill ${random.below(4)}`;
      });
    }
    return random.pick(choices)();
  };
}

/** Of those moves, as few as still break the same rule. */
export function shrink(
  ground: Ground,
  moves: readonly string[],
  violation: string,
  options?: PlayOptions,
): Promise<readonly string[]> {
  return shorten(moves, async (some) => (await playMoves(ground, some, options)).violations.includes(violation));
}

/** Leaves out halves, then smaller and smaller pieces, as long as what is left `isEnough`. */
export async function shorten(
  moves: readonly string[],
  isEnough: (moves: readonly string[]) => Promise<boolean>,
): Promise<readonly string[]> {
  let shortest = moves;
  for (let size = Math.ceil(moves.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let from = 0; from < shortest.length; ) {
      const rest = [...shortest.slice(0, from), ...shortest.slice(from + size)];
      if (await isEnough(rest)) shortest = rest;
      else from += size;
    }
  }
  return shortest;
}

/** To be pasted into a test. */
export function describeMoves(moves: readonly string[], violation: string): string {
  const lines = moves.map((move) => `    '${move}',\n`).join('');
  return `${violation}\n\n  playMoves(ground, [\n${lines}  ])\n`;
}
