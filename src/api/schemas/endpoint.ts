/** Compute endpoints. */
import { Type } from 'typebox';
import { closed, computeUnits, idOf, provisionerInput, ref, suspendTimeout, time } from './common.ts';
import { operationList } from './operation.ts';
import { EndpointSettings } from './settings.ts';

export const endpointTypes = ['read_write', 'read_only'] as const;
const states = ['init', 'active', 'idle'] as const;
const awakeReasons = [
  'recent_activity',
  'never_suspends',
  'query',
  'transaction',
  'background_worker',
  'replication',
  'operation',
] as const;

export const Endpoint = Type.Object(
  {
    id: idOf('endpoint'),
    host: Type.String({ description: 'Where clients connect; carries a port when it is not 5432.' }),
    name: Type.Optional(Type.String({ description: 'A label for people.' })),
    project_id: idOf('project'),
    branch_id: idOf('branch that it serves'),
    autoscaling_limit_min_cu: computeUnits('Smallest size in compute units (1 CU is 1 vCPU and 4 GB).'),
    autoscaling_limit_max_cu: computeUnits('Largest size; the same as the smallest for a fixed size.'),
    region_id: Type.String({ description: 'Region.' }),
    type: Type.Enum(endpointTypes, { description: '`read_only` is a read replica.' }),
    current_state: Type.Enum(states, {
      description: '`active`: a Postgres server answers. `idle`: none runs. `init`: never started yet.',
    }),
    pending_state: Type.Optional(
      Type.Enum(states, {
        description: 'The state it is on its way to, until the operations of a change have ended.',
      }),
    ),
    settings: ref(EndpointSettings),
    pooler_enabled: Type.Boolean({ description: 'Whether its pooled host is open.' }),
    pooler_mode: Type.Enum(['transaction'], { description: 'The only mode.' }),
    disabled: Type.Boolean({ description: 'A disabled compute refuses connections.' }),
    passwordless_access: Type.Boolean({ description: 'Whether a person may let clients in without a password.' }),
    last_active: Type.Optional(time('When a client last used it; absent before the first time.')),
    creation_source: Type.String({ description: 'What made it.' }),
    created_at: time('When it was made.'),
    updated_at: time('When it last changed.'),
    started_at: Type.Optional(time('When it last woke.')),
    suspended_at: Type.Optional(time('When it last fell asleep.')),
    proxy_host: Type.String({ description: 'The host without the endpoint’s own label.' }),
    suspend_timeout_seconds: suspendTimeout,
    provisioner: Type.String({ description: 'Kind of compute: `k8s-neonvm`, one that can autoscale.' }),
    temporary_disk: Type.Object(
      {
        limit_bytes: Type.Integer({ description: 'How much room its temporary files get.' }),
        enforcement: Type.Enum(['disk', 'session'], {
          description:
            '`disk`: all sessions share one bounded disk, and overrun is SQLSTATE 53100. ' +
            '`session`: Postgres bounds each session for itself, and overrun is SQLSTATE 53400.',
        }),
      },
      { description: 'Where queries that exceed memory spill to. An addition of Catnap.' },
    ),
    current_cu: Type.Optional(
      Type.Number({
        description:
          'The size that it has now, between the smallest and the largest, while it is awake and its size is enforced. ' +
          'An addition of Catnap.',
      }),
    ),
    limits_enforced: Type.Boolean({
      description:
        'Whether it is held to its size; false where control groups are not permitted, and then it uses what there is. ' +
        'An addition of Catnap.',
    }),
    compute_release_version: Type.Optional(Type.String({ description: 'Server release while it is awake.' })),
    replication_lag_bytes: Type.Optional(
      Type.Number({
        description:
          'Of a read replica: what it had not replayed when last looked at, every few seconds while both it and its ' +
          'primary are awake. An addition of Catnap.',
      }),
    ),
    replication_lag_seconds: Type.Optional(Type.Number({ description: 'The same, in time.' })),
    writes_off: Type.Optional(
      Type.Object(
        {
          reason: Type.Enum(['size_quota', 'disk_full'], {
            description: 'Its branch exceeds its size quota, or the machine has no room left.',
          }),
          quota: Type.Optional(
            Type.Enum(['logical_size_bytes'], { description: 'The quota that its branch exceeds, if it is that.' }),
          ),
          enforcement: Type.Enum(['session'], {
            description:
              '`session`: transactions are read-only by default, which is SQLSTATE 25006 for writes; a session can ' +
              'lift that to delete, and is ended if it makes the branch grow.',
          }),
          description: Type.String({ description: 'The same for people.' }),
        },
        { description: 'Present while the writes of a running compute are off. An addition of Catnap.' },
      ),
    ),
    why_awake: Type.Optional(
      Type.Object(
        {
          reason: Type.Enum(awakeReasons, {
            description:
              '`recent_activity`: its timeout is not over. `never_suspends`: its setting. `operation`: one that needs ' +
              'it is under way. The others: what the server said when it was last asked.',
          }),
          description: Type.String({ description: 'The same for people.' }),
          sleeps_at: Type.Optional(time('When it falls asleep if nobody uses it; absent while that is not known.')),
          pid: Type.Optional(Type.Integer({ description: 'Server process.' })),
          role: Type.Optional(Type.String({ description: 'Whose session.' })),
          application_name: Type.Optional(Type.String({ description: 'What the session calls itself.' })),
          slot: Type.Optional(Type.String({ description: 'Replication slot that the session uses.' })),
          since: Type.Optional(time('When that began.')),
          observed_at: Type.Optional(time('When the server was last asked.')),
        },
        { description: 'What keeps it awake, as the loop sees it that puts computes to sleep. An addition of Catnap.' },
      ),
    ),
    pending_update: Type.Optional(
      Type.Object(
        {
          compute_release_version: Type.Optional(Type.String({ description: 'A newer server release.' })),
          autoscaling_limit_max_cu: Type.Optional(Type.Number({ description: 'What the plan allows by now.' })),
        },
        { description: 'What the next start or a restart brings; an addition of Catnap’s.' },
      ),
    ),
  },
  { $id: 'Endpoint', description: 'A Postgres server attached to a branch.' },
);

export const EndpointReply = Type.Object({ endpoint: ref(Endpoint) });
export const EndpointsReply = Type.Object({ endpoints: Type.Array(ref(Endpoint)) });
export const EndpointOperationsReply = Type.Object({ endpoint: ref(Endpoint), operations: operationList });

const sizing = {
  autoscaling_limit_min_cu: Type.Optional(computeUnits('Smallest size; from the project’s defaults when left out.')),
  autoscaling_limit_max_cu: Type.Optional(computeUnits('Largest size; from the project’s defaults when left out.')),
  provisioner: provisionerInput,
  suspend_timeout_seconds: Type.Optional(suspendTimeout),
  settings: Type.Optional(ref(EndpointSettings)),
};

/** A compute that is made together with its branch. */
export const BranchEndpointOptions = Type.Object(
  { type: Type.Enum(endpointTypes, { description: 'Kind of compute.' }), ...sizing },
  { ...closed, $id: 'BranchEndpointOptions', description: 'A compute to make together with the branch.' },
);

const labels = {
  pooler_enabled: Type.Optional(Type.Boolean({ description: 'False closes its pooled host; true when left out.' })),
  pooler_mode: Type.Optional(Type.Enum(['transaction'], { description: 'The only mode.' })),
  disabled: Type.Optional(Type.Boolean({ description: 'Refuse connections, and sleep.' })),
  passwordless_access: Type.Optional(
    Type.Boolean({ description: 'Whether a person may let clients in without a password; true by default.' }),
  ),
  name: Type.Optional(Type.String({ minLength: 1, maxLength: 64, description: 'A label for people.' })),
};

export const EndpointUpdateBody = Type.Object(
  {
    endpoint: Type.Object(
      { branch_id: Type.Optional(idOf('branch to move to; it must have no read-write compute')), ...sizing, ...labels },
      closed,
    ),
  },
  closed,
);

export const EndpointCreateBody = Type.Object(
  {
    endpoint: Type.Object(
      {
        branch_id: idOf('branch to serve'),
        type: Type.Enum(endpointTypes, { description: 'A branch has one read_write compute at most.' }),
        region_id: Type.Optional(Type.String({ minLength: 1, maxLength: 64, description: 'The project’s region.' })),
        ...sizing,
        ...labels,
      },
      closed,
    ),
  },
  closed,
);
