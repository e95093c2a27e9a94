/**
 * The sizes of computes that have a range follow their load: twice a second the kernel's counters are read, and what
 * `core/autoscaling.ts` makes of them is carried out. Nothing is restarted, no connection drops, no server is asked.
 */
import { freemem, totalmem } from 'node:os';
import type { ComputeSample } from '../compute/interface/driver.ts';
import { type Decision, decide, freshState, type ScalerState, shareGrowth } from '../core/autoscaling.ts';
import { computeRef } from '../core/endpoint.ts';
import { areInForce, limitsAt, memoryBytes } from '../core/sizing.ts';
import { meterStep } from '../db/consumption.ts';
import { lockProjectInAnyState } from '../db/projects.ts';
import { type RunningCompute, recordSize, selectRunningComputes, sumCurrentCu } from '../db/sizes.ts';
import type { EndpointId } from '../lib/ids.ts';
import { memoryKillReports } from './memory-kills.ts';
import { readingBetween, type TimedSample } from './reading.ts';
import { makeReconciler, type Reconciler, type ReconcilerParts } from './reconciler.ts';

/** Below this part of the machine's memory growth is shared out instead of granted. */
const shortBelow = 0.1;

interface Watched extends TimedSample {
  readonly generation: number;
  readonly state: ScalerState;
}

interface Wish {
  readonly compute: RunningCompute;
  readonly sample: ComputeSample;
  readonly decision: Decision;
  readonly cu: number;
  readonly wanted: number;
}

interface Machine {
  freeBytes(): number;
  totalBytes(): number;
  /** Milliseconds of a clock that only goes forward. */
  now(): number;
}

const thisMachine: Machine = { freeBytes: freemem, totalBytes: totalmem, now: () => performance.now() };

export function makeAutoscaler(machine = thisMachine): Reconciler {
  const watched = new Map<EndpointId, Watched>();
  return makeReconciler('autoscaler', 500, async (parts) => {
    const wishes = await findWishes(parts, watched, machine);
    const granted = shareGrowth(wishes, await headroom(parts, wishes, machine));
    const changes = wishes.map((wish) => {
      // A shrink needs no grant.
      const cu = wish.wanted < wish.cu ? wish.wanted : (granted.get(wish) ?? wish.cu);
      return { subject: wish.compute.id, work: () => carryOut(parts, wish, cu) };
    });
    return [...memoryKillReports(parts, wishes), ...changes];
  });
}

async function findWishes(
  { core, driver }: ReconcilerParts,
  watched: Map<EndpointId, Watched>,
  machine: Machine,
): Promise<Wish[]> {
  const computes = await selectRunningComputes(core.database.sql, 'ranges');
  const byId = new Map(computes.map((compute) => [compute.id, compute]));
  for (const id of watched.keys()) if (!byId.has(id)) watched.delete(id);
  const samples = await driver.sample(computes.map(computeRef));
  return samples.flatMap((sample) => {
    const compute = byId.get(sample.endpointId);
    const wish = compute && wishOf(watched, compute, { sample, at: machine.now() }, core.config.scaleDownSeconds);
    return wish ? [wish] : [];
  });
}

/** Null at the first sample, which has no earlier one to compare with. */
function wishOf(
  watched: Map<EndpointId, Watched>,
  compute: RunningCompute,
  now: TimedSample,
  calmSeconds: number,
): Wish | null {
  const { id, generation, currentCu: cu } = compute;
  const before = watched.get(id);
  if (cu === null || before?.generation !== generation) {
    watched.set(id, { ...now, generation, state: freshState });
    return null;
  }
  const decision = decide(before.state, readingBetween(before, now), cu, { ...compute.server.given, calmSeconds });
  watched.set(id, { ...now, generation, state: decision.state });
  return { compute, sample: now.sample, decision, cu, wanted: decision.cu };
}

async function headroom({ core }: ReconcilerParts, wishes: readonly Wish[], machine: Machine): Promise<number> {
  if (!wishes.some((wish) => wish.wanted > wish.cu)) return 0;
  const free = machine.freeBytes();
  const isShort = free < shortBelow * machine.totalBytes();
  const ofMachine = isShort ? free / 2 / memoryBytes(1) : Number.MAX_SAFE_INTEGER;
  const { capacityCu } = core.config;
  if (capacityCu === undefined) return ofMachine;
  return Math.min(ofMachine, capacityCu - (await sumCurrentCu(core.database.sql)));
}

async function carryOut(
  { core, driver, log }: ReconcilerParts,
  { compute, sample, decision, cu: fromCu }: Wish,
  toCu: number,
): Promise<void> {
  const limits = limitsAt(toCu, compute.server.given, compute.server.settings, compute.settings.pg_settings ?? {});
  // Paused with nothing left to grant: unless the kernel may kill a process, the compute stays paused forever. Limits
  // that are not in force at the next turn, like these, or a shrink that did not fit yet, are asked for again.
  const isStuck = sample.isPaused && toCu === fromCu;
  if (areInForce(limits, sample) && !isStuck) return;
  const mayGrow = limits.mayGrow && !isStuck;
  const outcome = await driver.resize(computeRef(compute), compute.generation, { ...limits, mayGrow });
  if (toCu === fromCu) return;
  const reason = decision.reason ?? 'the machine had room for more';
  const { id } = compute;
  await core.database.transaction(async (tx) => {
    await lockProjectInAnyState(tx, compute.projectId);
    await meterStep(tx, id, core.clock.now());
    await recordSize(tx, compute, { fromCu, toCu, reason });
  });
  log.info({ endpoint: id, fromCu, toCu, reason, outcome }, 'a compute changed its size');
}
