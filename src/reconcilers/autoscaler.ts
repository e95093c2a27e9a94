/**
 * The sizes of computes that have a range follow their load: twice a second the kernel's counters are read, and what
 * `core/autoscaling.ts` makes of them is carried out. Nothing is restarted, no connection drops, no server is asked.
 */
import { freemem, totalmem } from 'node:os';
import type { ComputeRef, ComputeSample } from '../compute/interface/driver.ts';
import { type Decision, decide, freshState, type ScalerState, shareGrowth } from '../core/autoscaling.ts';
import { areInForce, limitsAt } from '../core/compute-limits.ts';
import { memoryBytes } from '../core/sizing.ts';
import { meterStep } from '../db/consumption.ts';
import { lockProjectInAnyState } from '../db/projects.ts';
import { type RunningCompute, recordSize, selectRunningComputes, sumCurrentCu } from '../db/sizes.ts';
import { reportMemoryKills } from './memory-kills.ts';
import { type Look, readingBetween } from './reading.ts';
import { onItsOwn, type Reconciler, type ReconcilerParts } from './reconciler.ts';

/** Below this part of the machine's memory growth is shared out instead of granted. */
const shortBelow = 0.1;

interface Watched extends Look {
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
  const watched = new Map<string, Watched>();
  return {
    name: 'autoscaler',
    everyMs: 500,
    turn: async (parts) => {
      const calmSeconds = parts.core.config.scaleDownSeconds;
      const computes = await selectRunningComputes(parts.core.database.sql, 'ranges');
      const byId = new Map(computes.map((compute) => [compute.endpointId, compute]));
      for (const id of watched.keys()) if (!byId.has(id as RunningCompute['endpointId'])) watched.delete(id);
      const samples = await parts.driver.sample(computes.map(refOf));
      const wishes = samples.flatMap((sample) => {
        const compute = byId.get(sample.endpointId);
        const wish = compute && look(watched, compute, { sample, at: machine.now() }, calmSeconds);
        return wish ? [wish] : [];
      });
      await reportMemoryKills(parts, wishes);
      const granted = shareGrowth(wishes, await headroom(parts, wishes, machine));
      for (const wish of wishes) {
        // A shrink needs no grant.
        const cu = wish.wanted < wish.cu ? wish.wanted : (granted.get(wish) ?? wish.cu);
        await onItsOwn(parts, wish.compute.endpointId, () => carryOut(parts, wish, cu));
      }
    },
  };
}

export const refOf = ({ projectId, branchId, endpointId, tenantUid }: RunningCompute): ComputeRef => ({
  ...{ projectId, branchId, endpointId, tenantUid },
});

/** Null at the first look, which there is nothing to compare with. */
function look(watched: Map<string, Watched>, compute: RunningCompute, now: Look, calmSeconds: number): Wish | null {
  const { endpointId, generation, currentCu: cu } = compute;
  const before = watched.get(endpointId);
  if (cu === null || before?.generation !== generation) {
    watched.set(endpointId, { ...now, generation, state: freshState });
    return null;
  }
  const decision = decide(before.state, readingBetween(before, now), cu, { ...compute.server.given, calmSeconds });
  watched.set(endpointId, { ...now, generation, state: decision.state });
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
  // Paused with nothing to be had: the kernel must be let to end a process, or it would stand still for ever. What is
  // not in force at the next look, like this, or a shrink that did not fit yet, is asked for again.
  const isStuck = sample.isPaused && toCu === fromCu;
  if (areInForce(limits, sample) && !isStuck) return;
  const mayGrow = limits.mayGrow && !isStuck;
  const outcome = await driver.resize(refOf(compute), compute.generation, { ...limits, mayGrow });
  if (toCu === fromCu) return;
  const reason = decision.reason ?? 'the machine had room for more';
  const { endpointId } = compute;
  await core.database.transaction(async (tx) => {
    await lockProjectInAnyState(tx, compute.projectId);
    await meterStep(tx, endpointId, core.clock.now());
    await recordSize(tx, compute, { fromCu, toCu, reason });
  });
  log.info({ endpoint: endpointId, fromCu, toCu, reason, outcome }, 'a compute changed its size');
}
