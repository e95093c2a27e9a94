/** Branches and their annotations. */
import { Type } from 'typebox';
import { closed, count, idOf, ref, stringMap, time } from './common.ts';
import { ConnectionDetails } from './connection-uri.ts';
import { Database } from './database.ts';
import { BranchEndpointOptions, Endpoint } from './endpoint.ts';
import { operationList } from './operation.ts';
import { cursorQuery, limitQuery, NextPage, searchQuery } from './pagination.ts';
import { Role } from './role.ts';

export const annotationValue = stringMap('Free labels, at most 50.', { maxProperties: 50 });
export const branchName = (description: string) =>
  Type.String({ minLength: 1, maxLength: 256, pattern: '\\S', description });

const BranchReceipt = Type.Object(
  {
    method: Type.String({ description: '`reflink`: it shares blocks with its source. `copy`: it is a full copy.' }),
    lsn: Type.Optional(Type.String({ description: 'Point of the source’s log that it was made at, where known.' })),
    duration_ms: count('Milliseconds that the copy took.'),
    bytes_copied: count('Sizes of the files that were written anew, together.'),
    bytes_shared: count('Sizes of the files that shared their blocks with the source then, together.'),
  },
  { description: 'How its data came to be. An addition of Catnap’s.' },
);
const ReplicationSlot = Type.Object({
  name: Type.String({ description: 'Name of the slot.' }),
  plugin: Type.String({ description: 'Output plugin.' }),
  database: Type.String({ description: 'The database that it decodes.' }),
  active: Type.Boolean({ description: 'Whether a subscriber streams from it.' }),
  wal_status: Type.String({
    description: '`reserved`, `extended` or `unreserved`; `lost`: its subscriber cannot continue, and must start anew.',
  }),
  retained_bytes: Type.Optional(count('How much WAL is kept for it; absent for a lost one.')),
});
const lsn = (description: string) => Type.String({ pattern: '^[0-9A-Fa-f]{1,8}/[0-9A-Fa-f]{1,8}$', description });

export const Branch = Type.Object(
  {
    id: idOf('branch'),
    project_id: idOf('project'),
    parent_id: Type.Optional(idOf('branch that it was made from')),
    parent_lsn: Type.Optional(Type.String({ description: 'Point in the parent’s log that it was made at.' })),
    parent_timestamp: Type.Optional(time('Moment of the parent that it was made at.')),
    name: Type.String({ description: 'Name, unique in the project.' }),
    current_state: Type.String({ description: '`init`, `resetting` or `ready`; nothing is ever archived here.' }),
    pending_state: Type.Optional(Type.String({ description: 'The state it is on its way to.' })),
    state_changed_at: time('When the state last changed.'),
    logical_size: Type.Optional(count('Bytes of data; absent until measured.')),
    size_quota: Type.Optional(
      Type.Object(
        {
          limit_bytes: count('settings.quota.logical_size_bytes of the project.'),
          exceeded: Type.Boolean({ description: 'Whether the branch is larger, so that its writes are turned off.' }),
        },
        { description: 'Present if the project has such a quota. An addition of Catnap.' },
      ),
    ),
    creation_source: Type.String({ description: 'What made it.' }),
    primary: Type.Optional(Type.Boolean({ description: 'The older name of `default`.' })),
    default: Type.Boolean({ description: 'Whether this is the default branch of the project.' }),
    protected: Type.Boolean({ description: 'A protected branch cannot be deleted.' }),
    cpu_used_sec: count('CPU seconds used by its computes.'),
    compute_time_seconds: count('Seconds that its computes were awake, times their size.'),
    active_time_seconds: count('Seconds that its computes were awake.'),
    written_data_bytes: count('Bytes written.'),
    data_transfer_bytes: count('Bytes sent to clients.'),
    created_at: time('When it was made.'),
    updated_at: time('When it last changed.'),
    ttl_interval_seconds: Type.Optional(count('Seconds from creation to expiry.')),
    expires_at: Type.Optional(time('When it deletes itself.')),
    last_reset_at: Type.Optional(time('When it was last restored.')),
    created_by: Type.Optional(Type.Object({ name: Type.Optional(Type.String()), image: Type.Optional(Type.String()) })),
    init_source: Type.Optional(Type.String({ description: '`parent-data` or `schema-only`.' })),
    receipt: Type.Optional(BranchReceipt),
    replication_slots: Type.Optional(
      Type.Array(ReplicationSlot, {
        description:
          'Its logical replication slots, as its server last reported them; absent until then, and without logical ' +
          'replication. An addition of Catnap.',
      }),
    ),
    restricted_actions: Type.Optional(
      Type.Array(Type.Object({ name: Type.String(), reason: Type.String() }), {
        description: 'What cannot be done to it at the moment, and why.',
      }),
    ),
  },
  { $id: 'Branch', description: 'A copy of the data with a life of its own.' },
);

export const Annotation = Type.Object(
  {
    object: Type.Object({ type: Type.String(), id: Type.String() }),
    value: annotationValue,
    created_at: Type.Optional(time('When the labels were first set.')),
    updated_at: Type.Optional(time('When the labels last changed.')),
  },
  { $id: 'Annotation', description: 'Labels of a branch.' },
);

export const BranchReply = Type.Object({ branch: ref(Branch), annotation: ref(Annotation) });
export const BranchesReply = Type.Object({
  branches: Type.Array(ref(Branch)),
  annotations: Type.Unsafe<Record<string, Type.Static<typeof Annotation>>>({
    type: 'object',
    additionalProperties: { $ref: 'Annotation' },
    description: 'Labels by branch id.',
  }),
  pagination: Type.Optional(ref(NextPage)),
});
export const BranchCountReply = Type.Object({ count: count('Number of branches.') });
export const BranchOperationsReply = Type.Object({ branch: ref(Branch), operations: operationList });
export const BranchCreateReply = Type.Object({
  branch: ref(Branch),
  endpoints: Type.Array(ref(Endpoint)),
  operations: operationList,
  roles: Type.Array(ref(Role)),
  databases: Type.Array(ref(Database)),
  connection_uris: Type.Optional(
    Type.Array(ref(ConnectionDetails), {
      description: 'Left out when there is more than one to choose from.',
    }),
  ),
});

export const BranchCreateBody = Type.Object(
  {
    branch: Type.Optional(
      Type.Object(
        {
          // neonctl sends an empty string for "the default branch".
          parent_id: Type.Optional(
            Type.String({
              pattern: '^[a-z0-9-]{0,60}$',
              description: 'Empty or left out: the default branch.',
            }),
          ),
          name: Type.Optional(branchName('Name; the id when left out.')),
          parent_lsn: Type.Optional(lsn('A position in the parent’s log to make it at, instead of the head.')),
          parent_timestamp: Type.Optional(time('A moment of the parent to make it at, instead of the head.')),
          protected: Type.Optional(Type.Boolean({ description: 'Make it a protected branch.' })),
          archived: Type.Optional(Type.Boolean({ description: 'Only false is possible here.' })),
          init_source: Type.Optional(
            Type.Enum(['parent-data', 'schema-only'], { description: 'What is copied from the parent.' }),
          ),
          expires_at: Type.Optional(time('When it is deleted automatically, at most 30 days ahead.')),
        },
        closed,
      ),
    ),
    endpoints: Type.Optional(
      Type.Array(ref(BranchEndpointOptions), { maxItems: 20, description: 'Computes to make with it.' }),
    ),
    annotation_value: Type.Optional(annotationValue),
  },
  closed,
);

export const BranchUpdateBody = Type.Object(
  {
    branch: Type.Object(
      {
        name: Type.Optional(branchName('New name.')),
        protected: Type.Optional(Type.Boolean({ description: 'Protect it, or stop protecting it.' })),
        expires_at: Type.Optional(
          Type.Unsafe<string | null>({
            type: ['string', 'null'],
            format: 'date-time',
            description: 'When it is deleted automatically; null for never.',
          }),
        ),
      },
      closed,
    ),
  },
  closed,
);

export const BranchRestoreBody = Type.Object(
  {
    source_branch_id: Type.String({
      pattern: '^[a-z0-9-]{1,60}$',
      description:
        'The branch that it is restored to: its parent, any other of the project, or with a moment of the past itself.',
    }),
    source_lsn: Type.Optional(lsn('A position in the source’s log to restore to, instead of its head.')),
    source_timestamp: Type.Optional(time('A moment of the source to restore to, instead of its head.')),
    preserve_under_name: Type.Optional(
      Type.String({
        maxLength: 256,
        description:
          'A new branch of this name keeps the data as they were, and takes over all children. Required if there are ' +
          'any, and for a restore to the branch’s own past.',
      }),
    ),
  },
  closed,
);

const databaseName = Type.String({ minLength: 1, maxLength: 63, description: 'Name of the database.' });
const atLsn = 'At this position in the branch’s log, instead of its head.';
const atTime = 'At this moment, instead of the head.';

export const BranchSchemaQuery = Type.Object({
  db_name: databaseName,
  lsn: Type.Optional(lsn(atLsn)),
  timestamp: Type.Optional(time(atTime)),
  format: Type.Optional(Type.Enum(['sql'], { default: 'sql', description: 'SQL text is the only form.' })),
});
export const BranchSchemaReply = Type.Object({ sql: Type.String({ description: 'Statements that make the schema.' }) });

export const SchemaComparisonQuery = Type.Object({
  base_branch_id: Type.Optional(
    Type.String({
      pattern: '^[a-z0-9-]{1,60}$',
      description: 'Compared with this branch; with the parent when left out.',
    }),
  ),
  db_name: databaseName,
  lsn: Type.Optional(lsn(atLsn)),
  timestamp: Type.Optional(time(atTime)),
  base_lsn: Type.Optional(lsn(atLsn)),
  base_timestamp: Type.Optional(time(atTime)),
});
export const SchemaComparisonReply = Type.Object({
  diff: Type.String({ description: 'Unified diff from the base to the branch; empty when they are the same.' }),
});

export const BranchesQuery = Type.Object({
  search: searchQuery('name or id'),
  sort_by: Type.Optional(
    Type.Enum(['name', 'created_at', 'updated_at'], {
      default: 'updated_at',
      description: 'Order of the list.',
    }),
  ),
  sort_order: Type.Optional(Type.Enum(['asc', 'desc'], { default: 'desc', description: 'Direction of the order.' })),
  cursor: cursorQuery,
  limit: limitQuery(10_000),
  include_deleted: Type.Optional(
    Type.Boolean({ default: false, description: 'Deleted branches are not kept, so this changes nothing.' }),
  ),
});
export const BranchCountQuery = Type.Object({ search: searchQuery('name or id') });
export const BranchDeleteQuery = Type.Object({
  hard_delete: Type.Optional(Type.Boolean({ default: false, description: 'Deleting a branch is final either way.' })),
});
