/** Snapshots, their restore, and the schedule that makes them. */
import { Type } from 'typebox';
import { daySeconds } from '../../lib/clock.ts';
import { Branch, branchName } from './branch.ts';
import { closed, count, idOf, ref, time } from './common.ts';
import { Endpoint } from './endpoint.ts';
import { operationList } from './operation.ts';

export const Snapshot = Type.Object(
  {
    id: idOf('snapshot'),
    name: Type.String({ description: 'Name; several snapshots can have the same.' }),
    slug: Type.String({ description: 'A name that is unique in the project; the id unless one was given.' }),
    status: Type.Enum(['creating', 'ready'], {
      description: 'Whether its data is there already. An addition of Catnap’s.',
    }),
    lsn: Type.Optional(Type.String({ description: 'Position in the branch’s log that it holds, where known.' })),
    timestamp: Type.Optional(time('Moment that it holds; absent while it is made, and for one taken at an LSN.')),
    source_branch_id: idOf('branch that it was taken of, which may be deleted'),
    created_at: time('When it was asked for.'),
    expires_at: Type.Optional(time('When it is deleted automatically.')),
    manual: Type.Boolean({ description: 'False for one that a schedule made.' }),
    full_size: Type.Optional(count('Bytes of all its files.')),
    diff_size: Type.Optional(count('Bytes of those that shared no blocks with their source when it was made.')),
  },
  { $id: 'Snapshot', description: 'The data of a branch at one moment. It outlives the branch.' },
);

const name = (description: string) => Type.Optional(branchName(description));

/** Times and positions are read by the domain, which names what is wrong with them. */
const momentText = (description: string) => Type.Optional(Type.String({ maxLength: 64, description }));

export const SnapshotCreateQuery = Type.Object({
  lsn: momentText('Position in the branch’s log, within its history. Excludes `timestamp`.'),
  timestamp: momentText('Moment within the branch’s history, in ISO 8601. Excludes `lsn`. Left out: now.'),
  name: name('Name; the branch’s name and the time when left out.'),
  slug: Type.Optional(
    Type.String({
      pattern: '^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$',
      description: 'A name that is unique in the project: lower case letters, digits and hyphens.',
    }),
  ),
  expires_at: momentText('When it is deleted automatically, in ISO 8601; never when left out.'),
});

export const SnapshotReply = Type.Object({ snapshot: ref(Snapshot) });
export const SnapshotCreateReply = Type.Object({ snapshot: ref(Snapshot), operations: operationList });
export const SnapshotsReply = Type.Object({ snapshots: Type.Array(ref(Snapshot)) });
export const SnapshotParams = Type.Object({ project_id: idOf('project'), snapshot_id: idOf('snapshot') });
export const SnapshotOperationsReply = Type.Object({ operations: operationList });

export const SnapshotUpdateBody = Type.Object(
  {
    snapshot: Type.Object(
      {
        name: name('New name.'),
        expires_at: Type.Optional(
          Type.Unsafe<string | null>({
            type: ['string', 'null'],
            maxLength: 64,
            description: 'When it is deleted automatically, in ISO 8601; null for never.',
          }),
        ),
      },
      closed,
    ),
  },
  closed,
);

const restoredName = 'Name of the restored branch; made up when left out.';

export const SnapshotRestoreQuery = Type.Object({ name: name('Older place of `name` in the body.') });
export const SnapshotRestoreBody = Type.Object(
  {
    name: name(restoredName),
    target_branch_id: Type.Optional(idOf('branch to replace; the one that it was taken of when left out')),
    finalize_restore: Type.Optional(
      Type.Boolean({ default: false, description: 'Replace the branch at once, as `finalize_restore` of it would.' }),
    ),
  },
  closed,
);
export const SnapshotRestoreReply = Type.Object({
  branch: ref(Branch),
  endpoints: Type.Array(ref(Endpoint), {
    description: 'A new compute, asleep, to look at the data with; or those that will move to the branch.',
  }),
  operations: operationList,
});

export const FinalizeRestoreBody = Type.Object(
  { name: name('New name of the branch that is replaced; made up when left out.') },
  closed,
);

const ScheduleItem = Type.Object(
  {
    frequency: Type.Enum(['hourly', 'daily', 'weekly', 'monthly', 'yearly'], { description: 'How often.' }),
    hour: Type.Optional(Type.Integer({ minimum: 0, maximum: 23, description: 'Hour in UTC; 0 when left out.' })),
    day: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 31,
        description: 'Weekly: 1 (Monday, also when left out) to 7. Monthly and yearly: day of the month, or its last.',
      }),
    ),
    month: Type.Optional(Type.Integer({ minimum: 1, maximum: 12, description: 'Yearly; 1 when left out.' })),
    retention_seconds: Type.Optional(
      Type.Integer({
        minimum: 3_600,
        maximum: 36_500 * daySeconds,
        description: 'For how long a snapshot is kept; for good when left out.',
      }),
    ),
  },
  closed,
);

const items = Type.Array(ScheduleItem, { maxItems: 20, description: 'What is due at the same time is one snapshot.' });

export const ScheduleBody = Type.Object({ schedule: items }, closed);
export const ScheduleReply = Type.Object({
  schedule: Type.Array(Type.Object(ScheduleItem.properties)),
  next_at: Type.Optional(time('When the next snapshot is due. An addition of Catnap’s.')),
  error: Type.Optional(Type.String({ description: 'Why the last one could not be made. An addition of Catnap’s.' })),
});
export const EmptyReply = Type.Object({});
