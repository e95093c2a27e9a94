/**
 * One episode: a new installation with tenants, then faults one after the other, each followed by the wait until
 * everybody is served again and by a cheap look, now and then by a whole one, and by a whole one at the end.
 */
import { eventually } from '../../helpers/eventually.ts';
import type { Random } from '../random.ts';
import { auditReplicas, auditRows, auditServers, auditStates } from './audit.ts';
import type { Configuration } from './configurations.ts';
import type { Fault } from './faults/fault.ts';
import { auditLeftovers } from './leftovers.ts';
import { Operator } from './operations.ts';
import type { Tally } from './tally.ts';
import { World } from './world.ts';

export interface EpisodeOptions {
  readonly configuration: Configuration;
  readonly random: Random;
  readonly tenants: number;
  /** What strikes next; null when the episode is over. */
  readonly nextFault: (world: World, random: Random) => Fault | null;
  /** A whole look after this many faults. */
  readonly auditEvery: number;
  readonly betweenOperationsMs: number;
  /** More load, which is begun when the tenants are there and stopped before the last look. */
  readonly beside?: (world: World) => Promise<{ stop(): Promise<void> }>;
  readonly tell: (line: string) => void;
}

export async function runEpisode(options: EpisodeOptions, tally: Tally): Promise<void> {
  const installation = await options.configuration.make();
  const world = new World(installation);
  try {
    await installation.program.start();
    for (let n = 0; n < options.tenants; n++) await world.addTenant(`tenant ${n}`);
    const beside = await options.beside?.(world);
    try {
      await strikeAll(world, options, tally);
    } finally {
      await beside?.stop();
    }
    refuseViolations(world);
    tally.endEpisode(options.configuration.name, world);
  } catch (error) {
    throw new Error(describeFailure(world, options, error), { cause: error });
  } finally {
    await world.stopWriters();
    await installation.destroy();
  }
}

async function strikeAll(world: World, options: EpisodeOptions, tally: Tally): Promise<void> {
  const { random } = options;
  const operator = new Operator(world, random.fork(), options.betweenOperationsMs);
  try {
    const choices = random.fork();
    for (let round = 1; ; round++) {
      const fault = options.nextFault(world, choices);
      if (fault === null) break;
      await strikeOne(world, fault, random.fork(), tally, options.tell);
      tally.rowsVerified += await auditRows(world, false);
      auditServers(world);
      refuseViolations(world);
      if (round % options.auditEvery === 0) await auditAll(world, operator, options.tell);
    }
    await auditAll(world, operator, options.tell);
  } finally {
    await operator.stop();
  }
  await world.stopWriters();
  await auditRows(world, true);
  refuseViolations(world);
}

async function strikeOne(
  world: World,
  fault: Fault,
  random: Random,
  tally: Tally,
  tell: (line: string) => void,
): Promise<void> {
  world.tell(fault.name);
  tell(`${fault.name} …`);
  const count = await fault.strike(world, random);
  const sinceMs = performance.now();
  await Promise.all([fault.mend?.(world), untilServed(world, sinceMs)]);
  const tookMs = performance.now() - sinceMs;
  tally.addFault(fault.name, count, tookMs);
  world.tell(`${count} struck, served again after ${Math.round(tookMs)} ms`);
  tell(`${fault.name} (${count}): ${(tookMs / 1_000).toFixed(2)} s`);
}

/** The API answers, and a row that was sent later has been acknowledged on every transport. */
async function untilServed(world: World, sinceMs: number): Promise<void> {
  const hasApi = eventually(async () => {
    const reply = await world.call('GET', '/projects?limit=1');
    if (reply?.status !== 200) throw new Error(`the API does not answer: ${reply?.status}`);
  });
  const hasRow = world.writers.map((writer) =>
    eventually(() => {
      if (writer.heardAfter(sinceMs) === null) throw new Error(`${writer.name} is not served: ${writer.lastProblem}`);
    }),
  );
  await Promise.all([hasApi, ...hasRow]);
}

async function auditAll(world: World, operator: Operator, tell: (line: string) => void): Promise<void> {
  const took: string[] = [];
  const timed = async (what: string, work: Promise<void>) => {
    const beganMs = performance.now();
    await work;
    took.push(`${what} ${((performance.now() - beganMs) / 1_000).toFixed(1)} s`);
  };
  await operator.hold();
  await timed('operations', world.settle());
  await timed('states', auditStates(world));
  await timed('replicas', auditReplicas(world));
  await timed('leftovers', auditLeftovers(world));
  await world.installation.audit?.();
  refuseViolations(world);
  operator.goOn();
  tell(`a whole look: ${took.join(', ')}`);
}

function refuseViolations(world: World): void {
  if (world.violations.length > 0) throw new Error(world.violations.join('\n'));
}

const storyLines = 40;
const outputLines = 40;
const lineLength = 400;

function describeFailure(world: World, { configuration, random }: EpisodeOptions, error: unknown): string {
  const last = (text: readonly string[], count: number) =>
    text.slice(-count).map((line) => `  ${line.slice(0, lineLength)}`);
  return [
    `episode with seed ${random.seed}, ${configuration.name}: ${error instanceof Error ? error.message : String(error)}`,
    'what had happened:',
    ...last(world.story, storyLines),
    'what the program printed last:',
    ...last(world.program.output.split('\n'), outputLines),
  ].join('\n');
}
