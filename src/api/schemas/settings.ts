/** The settings objects of projects and computes; the same schema serves requests and replies. */
import { Type } from 'typebox';
import { closed, computeUnits, count, ref, stringMap, suspendTimeout } from './common.ts';

const pgSettings = stringMap('Postgres parameters by name, values as text.');
const pgbouncerSettings = stringMap('Must be empty: the pooler has no parameters for a compute.');
const clockTime = (description: string) => Type.String({ pattern: '^([01][0-9]|2[0-3]):[0-5][0-9]$', description });

export const PreloadLibraries = Type.Object(
  {
    use_defaults: Type.Optional(Type.Boolean({ description: 'Load the standard set as well.' })),
    enabled_libraries: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 64 }), {
        maxItems: 50,
        description: 'Libraries to load at server start.',
      }),
    ),
  },
  { ...closed, $id: 'PreloadLibraries', description: 'Which libraries the server loads when it starts.' },
);

export const EndpointSettings = Type.Object(
  {
    pg_settings: Type.Optional(pgSettings),
    pgbouncer_settings: Type.Optional(pgbouncerSettings),
    preload_libraries: Type.Optional(ref(PreloadLibraries)),
  },
  { ...closed, $id: 'EndpointSettings', description: 'Settings of one compute.' },
);

export const DefaultEndpointSettings = Type.Object(
  {
    pg_settings: Type.Optional(pgSettings),
    pgbouncer_settings: Type.Optional(pgbouncerSettings),
    autoscaling_limit_min_cu: Type.Optional(computeUnits('Smallest size of a new compute.')),
    autoscaling_limit_max_cu: Type.Optional(computeUnits('Largest size of a new compute.')),
    suspend_timeout_seconds: Type.Optional(suspendTimeout),
  },
  {
    ...closed,
    $id: 'DefaultEndpointSettings',
    description: 'What a compute gets that is created without saying otherwise.',
  },
);

export const ProjectQuota = Type.Object(
  {
    active_time_seconds: Type.Optional(count('Seconds that computes may be awake.')),
    compute_time_seconds: Type.Optional(count('Seconds that computes may be awake, times their size.')),
    written_data_bytes: Type.Optional(count('Bytes of WAL that may be written.')),
    data_transfer_bytes: Type.Optional(count('Bytes that clients may be sent.')),
    logical_size_bytes: Type.Optional(count('Bytes that one branch may hold before its writes are off.')),
  },
  {
    ...closed,
    $id: 'ProjectQuota',
    description:
      'What the project may use in a month; a quota that is used up suspends its computes. 0 is no limit. ' +
      'logical_size_bytes bounds each branch by itself, whatever the month.',
  },
);

export const AllowedIps = Type.Object(
  {
    ips: Type.Optional(
      Type.Array(Type.String({ maxLength: 100, format: 'ip-rule' }), {
        maxItems: 1000,
        description: 'Addresses, CIDR blocks or `a-b` ranges; empty lets everybody in.',
      }),
    ),
    protected_branches_only: Type.Optional(Type.Boolean({ description: 'Apply to protected branches alone.' })),
  },
  { ...closed, $id: 'AllowedIps', description: 'From where clients may connect.' },
);

export const MaintenanceWindow = Type.Object(
  {
    weekdays: Type.Array(Type.Integer({ minimum: 1, maximum: 7 }), {
      minItems: 1,
      maxItems: 7,
      uniqueItems: true,
      description: 'The days on which it begins: 1 is Monday, 7 is Sunday.',
    }),
    start_time: clockTime('HH:MM, UTC.'),
    end_time: clockTime('HH:MM, UTC; a time before the start is one of the next day.'),
  },
  {
    ...closed,
    $id: 'MaintenanceWindow',
    description: 'When a compute that never sleeps is restarted, once, for an update that waits (`pending_update`).',
  },
);

export const ProjectSettings = Type.Object(
  {
    quota: Type.Optional(ref(ProjectQuota)),
    allowed_ips: Type.Optional(ref(AllowedIps)),
    enable_logical_replication: Type.Optional(
      Type.Boolean({
        description:
          'Servers run with `wal_level` `logical`, and roles made through the API may replicate and subscribe. ' +
          'Turning it on restarts computes that are awake; once on it stays on.',
      }),
    ),
    maintenance_window: Type.Optional(ref(MaintenanceWindow)),
    block_public_connections: Type.Optional(
      Type.Boolean({
        description: 'Refuse clients whose address is neither loopback nor private, even if allowed_ips has it.',
      }),
    ),
    allow_outbound_connections: Type.Optional(
      Type.Boolean({
        description:
          'Let SQL in the computes (foreign servers, subscriptions) connect to the internet; to this machine and to ' +
          'private networks only as far as the operator allows. A change restarts computes that are awake.',
      }),
    ),
    block_vpc_connections: Type.Optional(Type.Boolean({ description: 'Only false: there are no VPC endpoints.' })),
    audit_log_level: Type.Optional(
      Type.Enum(['base', 'extended', 'full'], { description: 'Always refused: there is no audit log.' }),
    ),
    hipaa: Type.Optional(Type.Boolean({ description: 'Only false.' })),
    preload_libraries: Type.Optional(ref(PreloadLibraries)),
  },
  { ...closed, $id: 'ProjectSettings', description: 'Settings of a whole project.' },
);
