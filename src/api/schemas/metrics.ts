/** The history of a compute: an addition by Catnap. */
import { Type } from 'typebox';
import { daySeconds } from '../../lib/clock.ts';
import { closed, idOf, time } from './common.ts';

export const MetricsQuery = Type.Object(
  {
    from: Type.Optional(
      Type.String({ format: 'date-time', description: 'Begin; an hour before the end if left out.' }),
    ),
    to: Type.Optional(
      Type.String({
        format: 'date-time',
        description: 'End, not included; if left out, now, or 7 days after the begin where that is earlier.',
      }),
    ),
    step: Type.Optional(
      Type.Integer({
        minimum: 15,
        maximum: daySeconds,
        description: 'Seconds between points; chosen to fit if left out.',
      }),
    ),
  },
  closed,
);

const measured = (description: string) => Type.Optional(Type.Number({ description }));

const MetricsPoint = Type.Object({
  at: time('Begin of the step. Steps in which it slept are left out.'),
  cu: measured('Size; absent where sizes are not enforced.'),
  cpu_cores: measured('Cores in use.'),
  memory_bytes: Type.Number({ description: 'Memory in use, without cache.' }),
  cache_bytes: Type.Number({ description: 'Page cache of its files.' }),
  working_set_bytes: Type.Number({ description: 'The part of the cache that is used again and again.' }),
  connections_active: measured('Sessions that ran a statement.'),
  connections_idle: measured('Sessions that did not.'),
  connections_max: measured('`max_connections`.'),
  transactions_per_second: measured('Committed and rolled back.'),
  cache_hit_ratio: measured('Of the blocks that were asked for, those found in shared buffers: 0 to 1.'),
  replication_lag_bytes: measured('Of a read replica.'),
  database_size_bytes: measured('All databases of its branch.'),
});

const MetricsSizeChange = Type.Object({
  at: time('When.'),
  from_cu: Type.Number({ description: 'Size before.' }),
  to_cu: Type.Number({ description: 'Size after.' }),
  reason: Type.String({ description: 'Why, in words.' }),
});

export const MetricsReply = Type.Object({
  endpoint_id: idOf('compute'),
  from: time('Begin.'),
  to: time('End.'),
  step_seconds: Type.Integer({ description: 'Seconds between points.' }),
  samples: Type.Array(MetricsPoint, { description: 'Oldest first. Kept for 7 days, coarser with age.' }),
  size_changes: Type.Array(MetricsSizeChange, { description: 'Steps of the autoscaler, oldest first.' }),
});
