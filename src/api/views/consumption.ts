/** Consumption: rows to periods and timeframes. */
import { createHash } from 'node:crypto';
import { type Consumption, endOf } from '../../core/consumption.ts';
import { hourMs } from '../../lib/clock.ts';
import { invalid } from '../../lib/errors.ts';
import { time } from './common.ts';

type Subject = Consumption['subjects'][number];
type Row = Subject['rows'][number];

export const namesIn = (list: string | readonly string[] | undefined): string[] | null =>
  list === undefined ? null : [list].flat().flatMap((text) => text.split(',').filter((name) => name !== ''));

const unmeasured = [
  'instant_restore_bytes_month',
  'private_network_transfer_bytes',
  'extra_branches_month',
  'snapshot_storage_bytes_month',
];
const measured: Readonly<Record<string, (row: Row) => number>> = {
  compute_unit_seconds: (row) => row.computeUnitSeconds,
  public_network_transfer_bytes: (row) => row.transferBytes,
  root_branch_bytes_month: (row) => row.rootByteHours / hoursOfMonth(row.start),
  child_branch_bytes_month: (row) => row.childByteHours / hoursOfMonth(row.start),
};

/** What is not measured here is left out of the reply, so that no number is made up. */
export function requireMetrics(list: string | readonly string[]): string[] {
  const allowed = [...Object.keys(measured), ...unmeasured];
  const names = namesIn(list) ?? [];
  const unknown = names.find((name) => !allowed.includes(name));
  if (unknown !== undefined || names.length === 0) {
    throw invalid(`invalid request: metrics must be of ${allowed.join(', ')}`);
  }
  return names.filter((name) => name in measured);
}

export function periodsView<T>(found: Consumption, { rows, ...subject }: Subject, now: Date, frame: (row: Row) => T) {
  const months = new Map<string, Row[]>();
  for (const row of rows) {
    const month = row.start.toISOString().slice(0, 7);
    months.set(month, [...(months.get(month) ?? []), row]);
  }
  return [...months].map(([month, held]) => {
    const start = new Date(`${month}-01T00:00:00Z`);
    const end = endOf(start, 'month');
    return {
      period_id: uuidOf(`${subject.projectId} ${subject.branchId ?? ''} ${month}`),
      period_plan: found.plan,
      period_start: time(start),
      ...(end <= now ? { period_end: time(end) } : {}),
      consumption: held.map((row) => ({
        timeframe_start: time(row.start),
        timeframe_end: time(endOf(row.start, found.unit)),
        ...frame(row),
      })),
    };
  });
}

export function timeframe(row: Row) {
  const storage = Math.round(row.rootByteHours + row.childByteHours);
  return {
    active_time_seconds: Math.round(row.activeSeconds),
    compute_time_seconds: Math.round(row.cpuSeconds),
    written_data_bytes: Math.round(row.writtenBytes),
    data_transfer_bytes: Math.round(row.transferBytes),
    synthetic_storage_size_bytes: row.logicalBytes,
    data_storage_bytes_hour: storage,
    logical_size_bytes: row.logicalBytes,
    logical_size_bytes_hour: storage,
  };
}

export const timeframeV2 = (names: readonly string[]) => (row: Row) => ({
  metrics: names.map((name) => ({ metric_name: name, value: Math.round(measured[name]?.(row) ?? 0) })),
});

export const pageView = ({ cursor }: Consumption) => (cursor === null ? {} : { pagination: { cursor } });

function hoursOfMonth(at: Date): number {
  const start = new Date(Date.UTC(at.getUTCFullYear(), at.getUTCMonth(), 1));
  return (endOf(start, 'month').getTime() - start.getTime()) / hourMs;
}

/** The same text gives the same UUID; a month has no row with an id. */
function uuidOf(text: string): string {
  const hex = createHash('sha256').update(text).digest('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), `5${hex.slice(13, 16)}`, `8${hex.slice(17, 20)}`, hex.slice(20, 32)].join(
    '-',
  );
}
