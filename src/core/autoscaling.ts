/**
 * Which size a compute should have, from what it used. Pure: the reconciler reads the kernel's counters and carries the
 * answer out. The goal is the largest of three: CPU, memory, and the part of the page cache that is used again and
 * again. A compute grows quickly and shrinks slowly, by halves, and a shrink that proved wrong delays the next one.
 */

import type { SizeRange } from '../lib/model.ts';
import { memoryBytes } from './sizing.ts';

/** What a compute did between two samples. */
export interface Reading {
  readonly seconds: number;
  /** Cores that it used on average. */
  readonly cores: number;
  /** Share of the scheduling periods in which it used up its quota early. */
  readonly throttled: number;
  /** Memory that dropping cache would not free. */
  readonly usedBytes: number;
  readonly cacheBytes: number;
  readonly workingSetBytes: number;
  /** Cache that had been dropped and had to be read again. */
  readonly refaultBytes: number;
  /** It is paused at its memory limit. */
  readonly isPaused: boolean;
}

export interface ScalerState {
  /** How long it has wanted to be larger. */
  readonly wantingSeconds: number;
  /** How long it could have been smaller, and the largest goal in that time. */
  readonly calmSeconds: number;
  readonly calmGoal: number;
  /** How many times the usual calm it needs before it shrinks. */
  readonly patience: number;
  readonly sinceShrinkSeconds: number;
}

export interface Decision {
  readonly state: ScalerState;
  readonly cu: number;
  /** Why the size should change; null if it should not. */
  readonly reason: string | null;
}

/** The step in which sizes follow the load. */
const unit = 0.25;
/** Share of the quota beyond which a compute has no room for a burst. */
const cpuTarget = 0.8;
/** A smaller size may be used up to this share, or the next sample would ask for the larger size again. */
const calmTarget = 0.6;
/** A saturated compute demands more than it has; how much more is unknown. */
const isSaturated = ({ throttled, cores }: Reading, cu: number) => throttled >= 0.25 && cores >= 0.7 * cu;
const memoryTarget = 0.75;
const memoryWithCacheTarget = 0.9;
const workingSetTarget = 0.75;
/** Share of the memory limit: reading this much again in a second means that the cache is too small. */
const refaultShare = 0.02;
/** Demand that lasts this long is not a blip. */
const sustainSeconds = 0.9;
const patienceMax = 20;
/** A shrink that is undone within this many times the usual calm was wrong. */
const regretTimes = 4;

export const freshState: ScalerState = {
  wantingSeconds: 0,
  calmSeconds: 0,
  calmGoal: 0,
  patience: 1,
  sinceShrinkSeconds: Number.POSITIVE_INFINITY,
};

/** The allowed sizes, and how long a smaller size must have been enough before it is taken. */
export interface Bounds extends SizeRange {
  readonly calmSeconds: number;
}

export function decide(state: ScalerState, reading: Reading, cu: number, bounds: Bounds): Decision {
  const aged = { ...state, sinceShrinkSeconds: state.sinceShrinkSeconds + reading.seconds };
  const goals = goalsOf(reading, cu);
  const [name, goal] = largest(goals);
  const wanted = clamp(ceil(goal), bounds);
  if (wanted > cu) return grow(aged, reading, { cu, wanted, name, calmSeconds: bounds.calmSeconds });
  return shrink({ ...aged, wantingSeconds: 0 }, reading, cu, bounds);
}

type GoalName = 'cpu' | 'memory' | 'working set';

interface Growth {
  readonly cu: number;
  readonly wanted: number;
  readonly name: GoalName;
  readonly calmSeconds: number;
}

function grow(state: ScalerState, reading: Reading, to: Growth): Decision {
  const wantingSeconds = state.wantingSeconds + reading.seconds;
  const calm = { calmSeconds: 0, calmGoal: 0 };
  // Memory cannot wait: a process that needs it now may be killed in a moment.
  if (to.name !== 'memory' && wantingSeconds < sustainSeconds) {
    return { state: { ...state, ...calm, wantingSeconds }, cu: to.cu, reason: null };
  }
  const wasWrong = state.sinceShrinkSeconds < regretTimes * to.calmSeconds;
  const patience = wasWrong ? Math.min(state.patience * 2, patienceMax) : state.patience;
  const sinceShrinkSeconds = wasWrong ? Number.POSITIVE_INFINITY : state.sinceShrinkSeconds;
  return {
    state: { ...calm, wantingSeconds, patience, sinceShrinkSeconds },
    cu: to.wanted,
    reason: reasonToGrow(to.name, reading, to.cu),
  };
}

function shrink(state: ScalerState, reading: Reading, cu: number, range: Bounds): Decision {
  const goal = clamp(ceil(largest(calmGoalsOf(reading))[1]), range);
  if (goal >= cu || cu <= range.minCu) {
    return { state: { ...state, calmSeconds: 0, calmGoal: 0 }, cu, reason: null };
  }
  const calmGoal = Math.max(state.calmGoal, goal);
  const calmSeconds = state.calmSeconds + reading.seconds;
  const holdSeconds = state.patience * range.calmSeconds;
  if (calmSeconds < holdSeconds) return { state: { ...state, calmGoal, calmSeconds }, cu, reason: null };
  const next = clamp(Math.max(calmGoal, floor(cu / 2)), range);
  // The step after this one needs half the time: the calm has been proven.
  return {
    state: { ...state, calmSeconds: holdSeconds / 2, calmGoal: 0, sinceShrinkSeconds: 0 },
    cu: next,
    reason: `calm: ${calmGoal} CU were enough for ${Math.round(calmSeconds)} s`,
  };
}

type Goals = readonly (readonly [GoalName, number])[];

function goalsOf(reading: Reading, cu: number): Goals {
  const { cores, usedBytes, seconds, refaultBytes, isPaused } = reading;
  const cachedBytes = Math.min(reading.workingSetBytes, reading.cacheBytes);
  const isThrashing = refaultBytes / seconds > refaultShare * memoryBytes(cu);
  return [
    ['cpu', isSaturated(reading, cu) ? 2 * cu : cores / cpuTarget],
    [
      'memory',
      Math.max(
        inCu(usedBytes / memoryTarget),
        inCu((usedBytes + cachedBytes) / memoryWithCacheTarget),
        isPaused ? 2 * cu : 0,
      ),
    ],
    ['working set', Math.max(inCu(reading.workingSetBytes / workingSetTarget), isThrashing ? 1.5 * cu : 0)],
  ];
}

/** Stricter than the goals for growth: at these sizes the compute has headroom. */
function calmGoalsOf({ cores, usedBytes, workingSetBytes }: Reading): Goals {
  return [
    ['cpu', cores / calmTarget],
    ['memory', inCu(usedBytes / calmTarget)],
    ['working set', inCu(workingSetBytes / calmTarget)],
  ];
}

function reasonToGrow(name: GoalName, reading: Reading, cu: number): string {
  const { cores, throttled, usedBytes, workingSetBytes, isPaused } = reading;
  if (name === 'cpu') {
    const held = throttled > 0 ? `, held back in ${Math.round(throttled * 100)} % of the time` : '';
    return `cpu: ${cores.toFixed(2)} of ${cu} cores used${held}`;
  }
  if (name === 'memory') {
    return `memory: ${mib(usedBytes)} of ${mib(memoryBytes(cu))} MiB used${isPaused ? ', and waiting for more' : ''}`;
  }
  return `working set: ${mib(workingSetBytes)} MiB of cached data is used again and again`;
}

/**
 * When computes ask for more than there is, each gets a share by its size, and none more than it asked for; what one
 * does not need goes to the others.
 */
export function shareGrowth<T extends { readonly cu: number; readonly wanted: number }>(
  wishes: readonly T[],
  headroomCu: number,
): Map<T, number> {
  const granted = new Map(wishes.map((wish) => [wish, wish.cu]));
  let left = Math.max(0, headroomCu);
  let open = wishes.filter((wish) => wish.wanted > wish.cu);
  while (left >= unit && open.length > 0) {
    const weight = open.reduce((sum, wish) => sum + wish.cu, 0);
    const share = left;
    for (const wish of open) {
      const has = granted.get(wish) ?? wish.cu;
      const part = Math.min(floor((share * wish.cu) / weight), wish.wanted - has);
      granted.set(wish, has + part);
      left -= part;
    }
    const next = open.filter((wish) => (granted.get(wish) ?? 0) < wish.wanted);
    // Shares smaller than a step: the smallest computes get theirs first, so that none starves.
    if (left === share) {
      const [smallest] = [...next].sort((a, b) => (granted.get(a) ?? 0) - (granted.get(b) ?? 0));
      if (smallest === undefined) break;
      granted.set(smallest, (granted.get(smallest) ?? 0) + unit);
      left -= unit;
    }
    open = next.filter((wish) => (granted.get(wish) ?? 0) < wish.wanted);
  }
  return granted;
}

const inCu = (bytes: number) => bytes / memoryBytes(1);
const ceil = (cu: number) => Math.ceil(cu / unit - 1e-9) * unit;
const floor = (cu: number) => Math.floor(cu / unit + 1e-9) * unit;
const clamp = (cu: number, range: SizeRange) => Math.min(range.maxCu, Math.max(range.minCu, cu));
const mib = (bytes: number) => Math.round(bytes / 1024 ** 2);

function largest(goals: Goals): readonly [GoalName, number] {
  return goals.reduce((best, next) => (next[1] > best[1] ? next : best));
}
