/** What projects and branches consumed. */
import { Type } from 'typebox';
import { granularities } from '../../core/consumption.ts';
import { closed, idOf, ref, time } from './common.ts';
import { CursorPage, cursorQuery, limitQuery } from './pagination.ts';

/** Repeated, or with commas. */
const list = (description: string) =>
  Type.Union([Type.String({ maxLength: 8_000 }), Type.Array(Type.String({ maxLength: 8_000 }), { maxItems: 100 })], {
    description,
  });

const period = {
  cursor: cursorQuery,
  from: Type.String({ format: 'date-time', description: 'Begin, rounded down to the granularity.' }),
  to: Type.String({ format: 'date-time', description: 'End, rounded down to the granularity.' }),
  granularity: Type.Enum(granularities, { description: 'Hours reach back 168 hours, days 60 days, months a year.' }),
  org_id: Type.Optional(Type.String({ maxLength: 60, description: 'Organization.' })),
};

export const ConsumptionQuery = Type.Object(
  {
    ...period,
    limit: limitQuery(100, 10),
    project_ids: Type.Optional(list('Keep only these projects.')),
    include_v1_metrics: Type.Optional(Type.Boolean({ description: 'Taken and ignored.' })),
    metrics: Type.Optional(list('Taken and ignored: every reply has all of them.')),
  },
  closed,
);

export const ConsumptionV2Query = Type.Object(
  {
    ...period,
    limit: limitQuery(100, 10),
    project_ids: Type.Optional(list('Keep only these projects.')),
    metrics: list('Which metrics to show.'),
  },
  closed,
);

export const BranchConsumptionQuery = Type.Object(
  {
    ...period,
    limit: limitQuery(1_000, 100),
    project_ids: list('Projects whose branches to show.'),
    branch_ids: Type.Optional(list('Keep only these branches.')),
    metrics: list('Which metrics to show.'),
  },
  closed,
);

const count = (description: string) => Type.Integer({ minimum: 0, description });
const frame = { timeframe_start: time('Begin.'), timeframe_end: time('End.') };
const periodOf = <T extends Parameters<typeof Type.Array>[0]>(timeframe: T) =>
  Type.Object({
    period_id: Type.String({ description: 'Names the month of this subject.' }),
    period_plan: Type.String({ description: 'Plan of the organization.' }),
    period_start: time('Begin of the month.'),
    period_end: Type.Optional(time('End of the month, once it is over.')),
    consumption: Type.Array(timeframe, { description: 'Oldest first.' }),
  });

const Timeframe = Type.Object({
  ...frame,
  active_time_seconds: count('Seconds that computes were awake.'),
  compute_time_seconds: count('CPU seconds that computes used.'),
  written_data_bytes: count('WAL that was written.'),
  data_transfer_bytes: count('Bytes that were sent to clients.'),
  synthetic_storage_size_bytes: count('Largest logical size of a branch.'),
  data_storage_bytes_hour: count('Storage, in bytes times hours.'),
  logical_size_bytes: count('Largest logical size of a branch.'),
  logical_size_bytes_hour: count('Storage, in bytes times hours.'),
});

const TimeframeV2 = Type.Object({
  ...frame,
  metrics: Type.Array(
    Type.Object({
      metric_name: Type.String({ description: 'Which.' }),
      value: count('How much.'),
    }),
    { description: 'Those of the wanted ones that are measured here.' },
  ),
});

const paged = { pagination: Type.Optional(ref(CursorPage)) };
const project = { project_id: idOf('project') };

export const ConsumptionReply = Type.Object({
  projects: Type.Array(Type.Object({ ...project, periods: Type.Array(periodOf(Timeframe)) })),
  ...paged,
});
export const ConsumptionV2Reply = Type.Object({
  projects: Type.Array(Type.Object({ ...project, periods: Type.Array(periodOf(TimeframeV2)) })),
  ...paged,
});
export const BranchConsumptionReply = Type.Object({
  branches: Type.Array(
    Type.Object({ ...project, branch_id: idOf('branch'), periods: Type.Array(periodOf(TimeframeV2)) }),
  ),
  ...paged,
});
