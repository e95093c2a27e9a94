/**
 * The quotas of a project, `settings.quota`. Four of them are for a month: once one is used up, the project's computes
 * are suspended and nothing starts them until the month ends or the quota is raised. The fifth bounds the size of each
 * branch: beyond it, writes are off. Zero, or no value, is no limit. Pure.
 */
import type { BranchRow } from '../db/branches.ts';
import { periodBounds, type Usage, usageAt } from '../db/consumption.ts';
import type { EndpointRow } from '../db/endpoints.ts';
import type { ProjectRow } from '../db/projects.ts';
import type { Clock } from '../lib/clock.ts';
import { CatnapError, type ErrorKind } from '../lib/errors.ts';

interface PeriodQuota {
  readonly name: string;
  readonly unit: string;
  readonly used: (usage: Usage) => number | undefined;
  readonly error: ErrorKind;
}

/** Each is held against the counter of the same name. */
const periodQuotas: readonly PeriodQuota[] = [
  { name: 'active_time_seconds', unit: 'seconds', used: ({ active }) => active, error: 'active_time_quota' },
  { name: 'compute_time_seconds', unit: 'seconds', used: ({ compute }) => compute, error: 'compute_time_quota' },
  { name: 'written_data_bytes', unit: 'bytes', used: ({ written }) => written, error: 'written_data_quota' },
  { name: 'data_transfer_bytes', unit: 'bytes', used: ({ transfer }) => transfer, error: 'data_transfer_quota' },
];

export interface SpentQuota {
  readonly name: string;
  readonly limit: number;
  readonly used: number;
  /** When the counters start at zero again. */
  readonly resetsAt: Date;
  readonly message: string;
  readonly error: ErrorKind;
}

export interface QuotaUse {
  readonly name: string;
  readonly unit: string;
  readonly limit: number;
  readonly used: number;
  readonly period: { readonly start: Date; readonly end: Date };
}

/** From this part of a quota on, people are told. */
const nearPart = 0.8;

/** The quotas of the month of which most is used, or all. */
export function nearQuotas({ settings, usage }: Metered, now: Date): QuotaUse[] {
  const current = usageAt(usage, now);
  return periodQuotas.flatMap(({ name, unit, used: read }) => {
    const limit = settings.quota?.[name] ?? 0;
    const used = Math.floor(read(current) ?? 0);
    return limit === 0 || used < limit * nearPart ? [] : [{ name, unit, limit, used, period: periodBounds(now) }];
  });
}

type Metered = Pick<ProjectRow, 'settings' | 'usage'>;

/** The first quota of the month that is used up; null when none is. */
export function spentQuota({ settings, usage }: Metered, now: Date): SpentQuota | null {
  const current = usageAt(usage, now);
  for (const { name, unit, used: read, error } of periodQuotas) {
    const limit = settings.quota?.[name] ?? 0;
    const used = Math.floor(read(current) ?? 0);
    if (limit === 0 || used < limit) continue;
    const resetsAt = periodBounds(now).end;
    const message =
      `the project has used up its quota ${name} (${used} of ${limit} ${unit}): its computes stay suspended until ` +
      `${resetsAt.toISOString().slice(0, 19)}Z, when the next period begins, or until settings.quota.${name} of the ` +
      'project is raised or removed';
    return { name, limit, used, resetsAt, message, error };
  }
  return null;
}

/** Called wherever something would start a compute. The project is locked, or was just read. */
export function requireQuotaLeft({ clock }: { readonly clock: Clock }, project: Metered): void {
  const spent = spentQuota(project, clock.now());
  if (spent !== null) throw new CatnapError(spent.error, spent.message);
}

/** A branch of unknown size has never been served. */
export function isOverSize({ sizeQuota, logicalSize }: Pick<BranchRow, 'sizeQuota' | 'logicalSize'>): boolean {
  return sizeQuota !== null && sizeQuota > 0 && (logicalSize ?? 0) > sizeQuota;
}

/** Whether the primary of a branch is to refuse writes: the branch is too large, or the machine has no room left. */
export function hasWritesOff(
  { diskGuard }: Pick<EndpointRow, 'diskGuard'>,
  branch: Pick<BranchRow, 'sizeQuota' | 'logicalSize'>,
): boolean {
  return diskGuard !== null || isOverSize(branch);
}

/**
 * What turns the writes of a branch off: transactions of its primary are read-only unless they say that they write, as
 * one that deletes must do. Postgres has no setting that allows deleting alone.
 */
export const readOnlyByDefault = { default_transaction_read_only: 'on' } as const;
