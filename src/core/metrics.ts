/** The history of a compute for display: samples as a series of even steps, and the changes of its size. */
import { type SampleRow, selectLatestSamples, selectSamples } from '../db/samples.ts';
import { type SizeChange, selectSizeChanges } from '../db/sizes.ts';
import { dayMs, hourMs } from '../lib/clock.ts';
import { invalid } from '../lib/errors.ts';
import type { EndpointId, ProjectId } from '../lib/ids.ts';
import { type Caller, requireEndpoint, requireProject } from './access.ts';
import type { Scope } from './context.ts';

/** Averages of one step. What was not measured in it is null; steps in which the compute slept are left out. */
export interface MetricsPoint {
  readonly at: Date;
  readonly cu: number | null;
  readonly cpuCores: number | null;
  readonly memoryBytes: number;
  readonly cacheBytes: number;
  readonly workingSetBytes: number;
  readonly connectionsActive: number | null;
  readonly connectionsIdle: number | null;
  readonly connectionsMax: number | null;
  readonly transactionsPerSecond: number | null;
  readonly cacheHitRatio: number | null;
  readonly replicationLagBytes: number | null;
  readonly databaseBytes: number | null;
}

export interface Metrics {
  readonly from: Date;
  readonly to: Date;
  readonly stepSeconds: number;
  readonly points: readonly MetricsPoint[];
  readonly sizeChanges: readonly SizeChange[];
}

const weekMs = 7 * dayMs;
const pointsMax = 2_000;
/** Enough for a graph. */
const pointsWanted = 240;
const steps = [15, 60, 300, 600, 1_800, 3_600];
const sizeChangesMax = 1_000;

export async function getEndpointMetrics(
  scope: Scope,
  caller: Caller,
  address: { readonly projectId: ProjectId; readonly endpointId: EndpointId },
  wanted: {
    readonly from?: Date | undefined;
    readonly to?: Date | undefined;
    readonly stepSeconds?: number | undefined;
  },
): Promise<Metrics> {
  await requireProject(scope, caller, address.projectId);
  await requireEndpoint(scope, address.projectId, address.endpointId);
  const now = scope.clock.now();
  // A client that asks for a whole week up to now has read its clock a moment earlier.
  const to = wanted.to ?? earlier(now, new Date((wanted.from ?? now).getTime() + weekMs));
  const from = wanted.from ?? new Date(to.getTime() - hourMs);
  const spanMs = to.getTime() - from.getTime();
  if (spanMs <= 0) throw invalid('invalid request: from must be before to');
  if (spanMs > weekMs) throw invalid('invalid request: from and to must be at most 7 days apart');
  const stepSeconds = wanted.stepSeconds ?? steps.find((step) => spanMs / 1_000 / step <= pointsWanted) ?? 3_600;
  if (spanMs / 1_000 / stepSeconds > pointsMax) {
    throw invalid(`invalid request: step must be at least ${Math.ceil(spanMs / 1_000 / pointsMax)} for this period`);
  }
  const rows = await selectSamples(scope.sql, address.endpointId, { from, to });
  const changes = await selectSizeChanges(scope.sql, address.endpointId, { from, to, limit: sizeChangesMax });
  return { from, to, stepSeconds, points: seriesOf(rows, from, stepSeconds), sizeChanges: changes.reverse() };
}

const earlier = (a: Date, b: Date) => (a < b ? a : b);

/** The last minute of every compute that runs, for Prometheus. */
export async function latestMetrics(scope: Scope) {
  return selectLatestSamples(scope.sql);
}

export function seriesOf(rows: readonly SampleRow[], from: Date, stepSeconds: number): MetricsPoint[] {
  const bucketOf = (at: Date) => Math.floor((at.getTime() - from.getTime()) / 1_000 / stepSeconds);
  const buckets = new Map<number, SampleRow[]>();
  for (const row of rows) {
    const bucket = bucketOf(row.at);
    const held = buckets.get(bucket);
    if (held) held.push(row);
    else buckets.set(bucket, [row]);
  }
  const rates = { cpu: ratesOf(rows, ['cpuSeconds']), server: ratesOf(rows, serverSums) };
  return [...buckets].map(([bucket, held]) => ({
    at: new Date(from.getTime() + bucket * stepSeconds * 1_000),
    ...gauges(held),
    cpuCores: over(held, rates.cpu, (rate) => rate.cpuSeconds),
    transactionsPerSecond: over(held, rates.server, (rate) => rate.transactions),
    cacheHitRatio: hitRatio(held, rates.server),
  }));
}

const serverSums = ['transactions', 'blocksHit', 'blocksRead'] as const;
type SumName = 'cpuSeconds' | (typeof serverSums)[number];
type Growth = Readonly<Record<SumName, number>> & { readonly seconds: number };

/** Growth between a row and the previous one of the same start that has these sums. */
function ratesOf(rows: readonly SampleRow[], names: readonly SumName[]): Map<SampleRow, Growth> {
  const found = new Map<SampleRow, Growth>();
  let before: SampleRow | undefined;
  for (const row of rows) {
    if (names.some((name) => row[name] === null)) continue;
    if (before?.generation === row.generation) {
      const grown = (name: SumName) => Math.max(0, (row[name] ?? 0) - (before?.[name] ?? 0));
      const seconds = (row.at.getTime() - before.at.getTime()) / 1_000;
      const [blocksHit, blocksRead] = [grown('blocksHit'), grown('blocksRead')];
      const [cpuSeconds, transactions] = [grown('cpuSeconds'), grown('transactions')];
      found.set(row, { seconds, cpuSeconds, transactions, blocksHit, blocksRead });
    }
    before = row;
  }
  return found;
}

function over(rows: readonly SampleRow[], rates: Map<SampleRow, Growth>, pick: (growth: Growth) => number) {
  const held = rows.flatMap((row) => rates.get(row) ?? []);
  const seconds = held.reduce((sum, { seconds }) => sum + seconds, 0);
  return seconds === 0 ? null : held.reduce((sum, growth) => sum + pick(growth), 0) / seconds;
}

function hitRatio(rows: readonly SampleRow[], rates: Map<SampleRow, Growth>): number | null {
  const held = rows.flatMap((row) => rates.get(row) ?? []);
  const hit = held.reduce((sum, { blocksHit }) => sum + blocksHit, 0);
  const all = hit + held.reduce((sum, { blocksRead }) => sum + blocksRead, 0);
  return all === 0 ? null : hit / all;
}

function gauges(rows: readonly SampleRow[]) {
  const average = (pick: (row: SampleRow) => number | null) => {
    const values = rows.map(pick).filter((value) => value !== null);
    return values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0) / values.length;
  };
  const whole = (pick: (row: SampleRow) => number | null) => {
    const value = average(pick);
    return value === null ? null : Math.round(value);
  };
  return {
    cu: average((row) => row.cu),
    memoryBytes: whole((row) => row.memoryBytes) ?? 0,
    cacheBytes: whole((row) => row.cacheBytes) ?? 0,
    workingSetBytes: whole((row) => row.workingSetBytes) ?? 0,
    connectionsActive: average((row) => row.connectionsActive),
    connectionsIdle: average((row) => row.connectionsIdle),
    connectionsMax: whole((row) => row.connectionsMax),
    replicationLagBytes: whole((row) => row.replicationLagBytes),
    databaseBytes: whole((row) => row.databaseBytes),
  };
}
