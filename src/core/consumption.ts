/** What projects and branches consumed, by hour, day or month, in periods that are calendar months (UTC). */

import { type ConsumptionRow, selectConsumption } from '../db/consumption-history.ts';
import { selectProjects } from '../db/projects.ts';
import { dayMs, hourMs } from '../lib/clock.ts';
import type { PlanName } from '../lib/config.ts';
import { CatnapError, invalid } from '../lib/errors.ts';
import type { OrganizationId, ProjectId } from '../lib/ids.ts';
import { type Caller, resolveOrganization } from './access.ts';
import type { Scope } from './context.ts';

export const granularities = ['hourly', 'daily', 'monthly'] as const;
export type Granularity = (typeof granularities)[number];

export interface ConsumptionQuery {
  readonly organizationId: OrganizationId | null;
  /** Null for all of them. */
  readonly projectIds: readonly string[] | null;
  readonly branchIds: readonly string[] | null;
  readonly from: Date;
  readonly to: Date;
  readonly granularity: Granularity;
  readonly by: 'project' | 'branch';
  readonly cursor: string | null;
  readonly limit: number;
}

export interface Consumption {
  readonly plan: PlanName;
  readonly unit: 'hour' | 'day' | 'month';
  /** Every project of the page, or every branch of it that consumed something; oldest row first. */
  readonly subjects: readonly {
    readonly projectId: ProjectId;
    readonly branchId: string | null;
    rows: ConsumptionRow[];
  }[];
  readonly cursor: string | null;
}

const units = { hourly: 'hour', daily: 'day', monthly: 'month' } as const;
const reachMs: Readonly<Record<Granularity, number>> = {
  hourly: 7 * dayMs,
  daily: 60 * dayMs,
  monthly: 366 * dayMs,
};

export async function getConsumption(scope: Scope, caller: Caller, query: ConsumptionQuery): Promise<Consumption> {
  const organization = await resolveOrganization(scope, caller, query.organizationId);
  const unit = units[query.granularity];
  const period = requirePeriod(scope, query);
  const found = await selectProjects(scope.sql, {
    organizationIds: [organization.id],
    projectId: caller.projectId,
    search: null,
    recoverableAt: null,
    ...(query.by === 'project' ? { after: query.cursor, limit: 10_000 } : { after: null, limit: 10_000 }),
  });
  const wanted = found.map(({ id }) => id).filter((id) => query.projectIds?.includes(id) ?? true);
  const projectIds = query.by === 'project' ? wanted.slice(0, query.limit) : wanted;
  const { branchIds, by } = query;
  const now = scope.clock.now();
  const rows = await selectConsumption(scope.sql, { projectIds, branchIds, ...period, unit, by, now });
  const byKey = new Map<string, ConsumptionRow[]>();
  for (const row of rows) {
    const key = row.branchId ?? row.projectId;
    byKey.set(key, [...(byKey.get(key) ?? []), row]);
  }
  if (by === 'project') {
    const subjects = projectIds.map((projectId) => ({ projectId, branchId: null, rows: byKey.get(projectId) ?? [] }));
    return { plan: organization.plan, unit, subjects, cursor: projectIds.at(-1) ?? null };
  }
  const all = [...byKey.values()].map((held) => ({ ...subjectOf(held), rows: held }));
  const after =
    query.cursor === null ? all : all.filter((one) => `${one.projectId} ${one.branchId}` > (query.cursor ?? ''));
  const subjects = after.slice(0, query.limit);
  const last = subjects.at(-1);
  return { plan: organization.plan, unit, subjects, cursor: last ? `${last.projectId} ${last.branchId}` : null };
}

function subjectOf([row]: readonly ConsumptionRow[]): { projectId: ProjectId; branchId: string | null } {
  if (row === undefined) throw new Error('BUG: a group has a row');
  return { projectId: row.projectId, branchId: row.branchId };
}

/** Both ends are rounded down to the granularity, which limits how far back they may reach. */
function requirePeriod({ clock }: Scope, { from, to, granularity }: ConsumptionQuery): { from: Date; to: Date } {
  if (from >= to) throw invalid('invalid request: from must be before to');
  const oldest = clock.now().getTime() - reachMs[granularity];
  const begin = floorTo(from, granularity);
  if (begin.getTime() < floorTo(new Date(oldest), granularity).getTime()) {
    const reach = { hourly: 'the last 168 hours', daily: 'the last 60 days', monthly: 'the last year' }[granularity];
    throw new CatnapError('not_acceptable', `from is too early: ${granularity} consumption is available for ${reach}`);
  }
  const end = floorTo(to, granularity);
  return { from: begin, to: end > begin ? end : endOf(begin, units[granularity]) };
}

function floorTo(at: Date, granularity: Granularity): Date {
  const [year, month] = [at.getUTCFullYear(), at.getUTCMonth()];
  if (granularity === 'monthly') return new Date(Date.UTC(year, month, 1));
  if (granularity === 'daily') return new Date(Date.UTC(year, month, at.getUTCDate()));
  return new Date(Date.UTC(year, month, at.getUTCDate(), at.getUTCHours()));
}

export function endOf(start: Date, unit: Consumption['unit']): Date {
  if (unit === 'month') return new Date(Date.UTC(start.getUTCFullYear(), start.getUTCMonth() + 1, 1));
  return new Date(start.getTime() + (unit === 'day' ? dayMs : hourMs));
}
