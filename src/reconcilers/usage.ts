/**
 * Four times a minute: what computes used is recorded for the graphs and added to what they consumed, changed sizes of
 * branches are noted, and every running compute is held to its size. Kernel counters come with one call for all;
 * servers themselves are asked once a minute. Nothing here counts as activity, and nothing wakes a compute.
 */
import type { ComputeSample } from '../compute/interface/driver.ts';
import type { ServerMeasures, WrittenLog } from '../compute/interface/measures.ts';
import { computeRef } from '../core/endpoint.ts';
import { areInForce, limitsAt } from '../core/sizing.ts';
import {
  addConsumption,
  lockFreeProjects,
  meterCpu,
  meterTime,
  meterWritten,
  selectProjectsToMeter,
} from '../db/consumption.ts';
import { insertSamples, type SampleRow, thinSamples } from '../db/samples.ts';
import { type RunningCompute, selectRunningComputes } from '../db/sizes.ts';
import { meterStorage } from '../db/storage.ts';
import { meterTransfers } from '../db/transfers.ts';
import type { BranchId, EndpointId, ProjectId } from '../lib/ids.ts';
import { memoryKillReports } from './memory-kills.ts';
import { makeReconciler, type Reconciler, type ReconcilerParts } from './reconciler.ts';

/** Servers that are asked at the same time. */
const concurrency = 8;
const projectsAtOnce = 50;

interface Seen {
  readonly compute: RunningCompute;
  readonly sample: ComputeSample;
  readonly measures: ServerMeasures | null;
}

export function makeUsage(): Reconciler {
  const lastAt = { minute: '', tenMinutes: '' };
  return makeReconciler('usage', 15_000, async (parts) => {
    const { sql } = parts.core.database;
    const now = parts.core.clock.now();
    const resolution = resolutionOf(now, lastAt);
    const seen = await observeAll(parts, resolution >= 60);
    const rows = seen.map((one) => asRow(one, now, resolution));
    return [
      ...memoryKillReports(parts, seen),
      ...seen.map((one) => ({ subject: one.compute.id, work: () => holdToSize(parts, one) })),
      { subject: 'samples', work: () => insertSamples(sql, rows) },
      { subject: 'consumption', work: () => meter(parts, seen, now) },
      ...(resolution === 600 ? [{ subject: 'old samples', work: () => thinSamples(sql, now) }] : []),
    ];
  });
}

/** The first sample of a minute, and of ten minutes, is kept longer. */
function resolutionOf(now: Date, last: { minute: string; tenMinutes: string }): number {
  const minute = now.toISOString().slice(0, 16);
  const tenMinutes = minute.slice(0, -1);
  const resolution = last.tenMinutes !== tenMinutes ? 600 : last.minute !== minute ? 60 : 15;
  Object.assign(last, { minute, tenMinutes });
  return resolution;
}

async function observeAll(parts: ReconcilerParts, asksServers: boolean): Promise<Seen[]> {
  const computes = await selectRunningComputes(parts.core.database.sql, 'all');
  const byId = new Map(computes.map((compute) => [compute.id, compute]));
  const samples = await parts.driver.sample(computes.map(computeRef));
  const measures = asksServers ? await measureAll(parts, computes) : new Map<string, ServerMeasures>();
  return samples.flatMap((sample) => {
    const compute = byId.get(sample.endpointId);
    return compute ? [{ compute, sample, measures: measures.get(sample.endpointId) ?? null }] : [];
  });
}

async function measureAll(
  parts: ReconcilerParts,
  computes: readonly RunningCompute[],
): Promise<Map<string, ServerMeasures>> {
  const found = new Map<string, ServerMeasures>();
  const waiting = [...computes];
  const next = async () => {
    for (let compute = waiting.pop(); compute !== undefined; compute = waiting.pop()) {
      // A server that is busy, or just stopping, is asked again in a minute.
      const measures = await parts.driver.measure(computeRef(compute)).catch(() => null);
      if (measures !== null) found.set(compute.id, measures);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, next));
  return found;
}

/** Also those of a fixed size, and those that a start left without limits because Catnap was killed. */
async function holdToSize({ driver }: ReconcilerParts, { compute, sample }: Seen): Promise<void> {
  const { currentCu, server } = compute;
  if (!sample.isEnforced || currentCu === null) return;
  const limits = limitsAt(currentCu, server.given, server.settings, compute.settings.pg_settings ?? {});
  if (areInForce(limits, sample)) return;
  await driver.resize(computeRef(compute), compute.generation, limits);
}

function asRow({ compute, sample, measures }: Seen, at: Date, resolution: number): SampleRow {
  return {
    endpointId: compute.id,
    at,
    resolution,
    generation: compute.generation,
    cu: compute.currentCu,
    cpuSeconds: sample.cpuSeconds,
    throttledPeriods: sample.throttledPeriods,
    memoryBytes: sample.usedBytes,
    cacheBytes: sample.cacheBytes,
    workingSetBytes: sample.workingSetBytes,
    connectionsActive: measures?.connectionsActive ?? null,
    connectionsIdle: measures?.connectionsIdle ?? null,
    connectionsMax: measures?.connectionsMax ?? null,
    transactions: measures?.transactions ?? null,
    blocksHit: measures?.blocksHit ?? null,
    blocksRead: measures?.blocksRead ?? null,
    replicationLagBytes: compute.replicationLagBytes,
    databaseBytes: compute.databaseBytes,
  };
}

/** Some projects at a time: they are locked meanwhile, and a wake may wait for one of them. */
async function meter({ core }: ReconcilerParts, seen: readonly Seen[], now: Date): Promise<void> {
  const projectIds = await selectProjectsToMeter(core.database.sql);
  for (let from = 0; from < projectIds.length; from += projectsAtOnce) {
    const some = projectIds.slice(from, from + projectsAtOnce);
    await core.database.transaction(async (tx) => {
      const held = await lockFreeProjects(tx, some);
      const { cpu, wal } = sumsOf(seen, new Set(held));
      const parts = [
        ...(await meterTime(tx, now, held)),
        ...(await meterCpu(tx, cpu)),
        ...(await meterWritten(tx, wal)),
        ...(await meterTransfers(tx, held)),
        ...(await meterStorage(tx, now, held)),
      ];
      await addConsumption(tx, parts, now);
    });
  }
}

function sumsOf(seen: readonly Seen[], projects: ReadonlySet<ProjectId>) {
  const cpu = new Map<EndpointId, number>();
  const wal = new Map<BranchId, WrittenLog>();
  for (const { compute, sample, measures } of seen) {
    if (!projects.has(compute.projectId)) continue;
    cpu.set(compute.id, sample.cpuSeconds);
    if (measures?.wal != null) wal.set(compute.branchId, measures.wal);
  }
  return { cpu, wal };
}
