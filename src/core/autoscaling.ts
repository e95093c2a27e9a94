/**
 * Which size a compute should have, from what it used. Pure: the reconciler reads the kernel's counters and carries the
 * answer out. The goal is the largest of three: CPU, memory, and the part of the page cache that is used again and
 * again. Up comes quickly, down comes slowly and in halves, and a shrink that proved wrong makes the next one later.
 */

import type { SizeRange } from '../lib/model.ts';
import { memoryBytes } from './sizing.ts';

/** What a compute did between two looks at it. */
export interface Reading {
  readonly seconds: number;
  /** Cores that it used on average. */
  readonly cores: number;
  /** Part of the scheduling periods in which it had used up its quota before the end. */
  readonly throttled: number;
  /** Memory that dropping cache would not free. */
  readonly usedBytes: number;
  readonly cacheBytes: number;
  readonly workingSetBytes: number;
  /** Cache that it had to read again because it had been dropped. */
  readonly refaultBytes: number;
  /** It stands still at its memory limit. */
  readonly isPaused: boolean;
}

export interface ScalerState {
  /** How long it has wanted to be larger. */
  readonly wantingSeconds: number;
  /** How long it could have been smaller, and the largest goal in that time. */
  readonly calmSeconds: number;
  readonly calmGoal: number;
  /** How many times the usual time it has to be calm before it shrinks. */
  readonly patience: number;
  readonly sinceShrinkSeconds: number;
}

export interface Decision {
  readonly state: ScalerState;
  readonly cu: number;
  /** In words, when the size is to change. */
  readonly reason: string | null;
}

/** The step in which sizes follow the load. */
const unit = 0.25;
/** Of its quota; beyond it a compute has no room for a burst. */
const cpuTarget = 0.8;
/** What a smaller size may be used to at most, so that the next look does not ask for the larger one again. */
const calmTarget = 0.6;
/** Its demand is unknown then, only that it is more. */
const isSaturated = ({ throttled, cores }: Reading, cu: number) => throttled >= 0.25 && cores >= 0.7 * cu;
const memoryTarget = 0.75;
const memoryWithCacheTarget = 0.9;
const workingSetTarget = 0.75;
/** Of the memory limit, in a second: reading that much again means that the cache is too small. */
const refaultShare = 0.02;
/** Demand that lasts this long is no blink. */
const sustainSeconds = 0.9;
const patienceMax = 20;
/** A shrink that is undone within so many times the usual calm was wrong. */
const regretTimes = 4;

export const freshState: ScalerState = {
  wantingSeconds: 0,
  calmSeconds: 0,
  calmGoal: 0,
  patience: 1,
  sinceShrinkSeconds: Number.POSITIVE_INFINITY,
};

/** What may be asked for, and how long a smaller size must have been enough before it is taken. */
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
  // Memory does not wait: what asks for it now may be killed for it in a moment.
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

/** Stricter: the size that it would be at ease in. */
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
  return `working set: ${mib(workingSetBytes)} MiB of cached data are used again and again`;
}

/**
 * When less can be given than is asked for, each gets a part of it by its size, and nobody more than it asked for; what
 * one does not need goes to the others.
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
    // Parts smaller than a step: the smallest ones get theirs first, so that nobody starves.
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
