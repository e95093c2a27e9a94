/**
 * What is there before a schedule becomes interesting: more than a new project, most of the time. Nothing goes wrong
 * while a stage is set, so several schedules in a row begin with a copy of the same one, each in its own way.
 */
import { FakeDriver } from '../../../src/compute/fake/fake-driver.ts';
import type { FakeOptions, FakeWorld } from '../../../src/compute/fake/world.ts';
import type { Job } from '../../../src/operations/step.ts';
import { Random } from '../random.ts';
import type { Known } from './commands.ts';
import type { Ground } from './ground.ts';
import { readRows } from './invariants.ts';
import type { Past } from './past.ts';
import { World } from './world.ts';

/** For bugs that a schedule is to find. */
export interface PlayOptions {
  readonly registry?: Readonly<Record<string, Job>>;
  readonly makeDriver?: (options: FakeOptions) => FakeDriver;
}

/** A world that the next moves are made in, and what has led to it. */
export interface Entrance {
  readonly world: World;
  readonly moves: readonly string[];
  /** The operations that had ended by then. */
  readonly ended: ReadonlySet<string>;
}

interface Stage {
  readonly seed: number;
  readonly moves: readonly string[];
  readonly ended: ReadonlySet<string>;
  readonly past: Past;
  readonly known: Known;
  readonly held: FakeWorld;
  readonly nowMs: number;
}

/** Schedules whose seeds are the same but for the rest of a division by this have the same stage. */
export const schedulesPerStage = 16;

const stagingCommands = ['createBranch', 'createReplica', 'takeSnapshot', 'suspend', 'createRole', 'createDatabase'];

export const subjects = (random: Random) => `${random.below(8)} ${random.below(8)}`;

function stagings(random: Random): string[] {
  if (random.chance(0.25)) return [];
  const wanted = Array.from({ length: random.below(4) }, () => random.pick(stagingCommands));
  return ['settle', ...wanted.flatMap((name) => [`c1 ${name} ${subjects(random)}`, 'settle'])];
}

/** Of one ground, which keeps one stage at a time. */
export class Stages {
  readonly #ground: Ground;
  readonly #options: PlayOptions;
  #set: Stage | null = null;

  constructor(ground: Ground, options: PlayOptions = {}) {
    this.#ground = ground;
    this.#options = options;
  }

  async enter(scheduleSeed: number): Promise<Entrance> {
    const seed = Math.floor(scheduleSeed / schedulesPerStage);
    if (this.#set?.seed !== seed) this.#set = await this.#make(seed);
    const { moves, ended, past, known, held, nowMs } = this.#set;
    await this.#ground.putBack(nowMs);
    const start = { driver: this.#makeDriver({ world: structuredClone(held) }), known: structuredClone(known) };
    return { world: new World(this.#ground, start, this.#options.registry, past), moves, ended };
  }

  async #make(seed: number): Promise<Stage> {
    const driver = this.#makeDriver({});
    const start = { driver, known: await this.#ground.prepare() };
    const world = new World(this.#ground, start, this.#options.registry);
    const moves: string[] = [];
    for (const move of stagings(new Random(seed))) {
      if (move === 'settle') await world.settle();
      else if (!(await world.make(move))) continue;
      moves.push(move);
    }
    await this.#ground.keep();
    const { operations } = await readRows(world);
    const { branches, computes, replicas } = driver;
    return {
      seed,
      moves,
      ended: new Set(operations.filter(({ finishedAt }) => finishedAt !== null).map(({ id }) => id)),
      past: world.past,
      known: structuredClone(world.known),
      held: structuredClone({ branches, computes, replicas }),
      nowMs: this.#ground.nowMs,
    };
  }

  #makeDriver(options: FakeOptions): FakeDriver {
    return this.#options.makeDriver?.(options) ?? new FakeDriver(options);
  }
}
