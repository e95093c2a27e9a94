/** Projects. The create body depends on the Postgres majors of this installation, so it is made by a function. */
import { Type } from 'typebox';
import { daySeconds } from '../../lib/clock.ts';
import { annotationValue, Branch, branchName } from './branch.ts';
import { closed, computeUnits, count, identifier, idOf, provisionerInput, ref, time } from './common.ts';
import { ConnectionDetails } from './connection-uri.ts';
import { Database } from './database.ts';
import { Endpoint } from './endpoint.ts';
import { operationList } from './operation.ts';
import { CursorPage, cursorQuery, limitQuery, searchQuery } from './pagination.ts';
import { Role } from './role.ts';
import { DefaultEndpointSettings, ProjectSettings } from './settings.ts';

const projectName = (description: string) => Type.String({ minLength: 1, maxLength: 256, pattern: '\\S', description });

const historyRetention = Type.Integer({
  minimum: 0,
  maximum: 30 * daySeconds,
  description: 'Kept and shown, up to 30 days; there is no history yet.',
});

const shared = {
  id: idOf('project'),
  platform_id: Type.String({ description: 'What the computes run on.' }),
  region_id: Type.String({ description: 'Region.' }),
  name: Type.String({ description: 'Name of the project.' }),
  provisioner: Type.String({ description: 'Kind of computes: `k8s-neonvm`, those that can autoscale.' }),
  default_endpoint_settings: Type.Optional(ref(DefaultEndpointSettings)),
  settings: Type.Optional(ref(ProjectSettings)),
  pg_version: Type.Integer({ description: 'Postgres major version.' }),
  proxy_host: Type.String({ description: 'Host that all computes of the region share.' }),
  branch_logical_size_limit: count('Largest branch in MiB.'),
  branch_logical_size_limit_bytes: count('Largest branch in bytes.'),
  store_passwords: Type.Boolean({ description: 'Whether role passwords can be shown again.' }),
  cpu_used_sec: count('CPU seconds used by the computes.'),
  creation_source: Type.String({ description: 'What made it.' }),
  created_at: time('When it was made.'),
  updated_at: time('When it last changed.'),
  synthetic_storage_size: Type.Optional(count('Bytes stored.')),
  owner_id: Type.String({ description: 'User or organization that owns it.' }),
  compute_last_active_at: Type.Optional(time('When a client last used one of its computes.')),
  org_id: Type.Optional(idOf('organization')),
};

export const Project = Type.Object(
  {
    ...shared,
    data_storage_bytes_hour: count('Bytes stored, times hours.'),
    data_transfer_bytes: count('Bytes sent to clients.'),
    written_data_bytes: count('Bytes written.'),
    compute_time_seconds: count('Seconds that computes were awake, times their size.'),
    active_time_seconds: count('Seconds that computes were awake.'),
    history_retention_seconds: historyRetention,
    consumption_period_start: time('Start of the period that is counted.'),
    consumption_period_end: time('End of the period that is counted.'),
    quota_reset_at: Type.Optional(time('The same: when quotas start anew.')),
    quota_exceeded: Type.Optional(
      Type.Object(
        {
          name: Type.String({ description: 'Which of settings.quota.' }),
          limit: count('The quota.'),
          used: count('What was used of it in this period.'),
          resets_at: time('When the next period begins.'),
          message: Type.String({ description: 'What clients are told.' }),
        },
        { description: 'The quota that is used up, because of which no compute of the project may run.' },
      ),
    ),
    owner: Type.Optional(
      Type.Object({
        email: Type.String(),
        name: Type.String(),
        branches_limit: Type.Integer(),
        subscription_type: Type.String(),
      }),
    ),
  },
  { $id: 'Project', description: 'Branches, computes and settings that belong together.' },
);

export const ProjectListItem = Type.Object(
  {
    ...shared,
    active_time: count('Seconds that computes were awake.'),
    history_retention_seconds: Type.Optional(historyRetention),
    org_name: Type.Optional(Type.String({ description: 'Name of the organization.' })),
    branches_count: Type.Optional(
      count('Branches that it has; not in a list of recoverable projects, as the next two.'),
    ),
    endpoints_count: Type.Optional(count('Computes of all its branches, replicas included.')),
    active_endpoints_count: Type.Optional(count('Of those, computes that are awake.')),
    deleted_at: Type.Optional(time('When it was deleted; only in a list of recoverable projects, as the next one.')),
    recoverable_until: Type.Optional(time('When it is removed for good.')),
  },
  { $id: 'ProjectListItem', description: 'A project, as lists show it.' },
);

export const ProjectReply = Type.Object({ project: ref(Project) });
export const ProjectRecoverReply = Type.Object({ project: ref(Project), branches: Type.Array(ref(Branch)) });
export const ProjectOperationsReply = Type.Object({ project: ref(Project), operations: operationList });
export const ProjectCreateReply = Type.Object({
  project: ref(Project),
  connection_uris: Type.Array(ref(ConnectionDetails)),
  roles: Type.Array(ref(Role)),
  databases: Type.Array(ref(Database)),
  operations: operationList,
  branch: ref(Branch),
  endpoints: Type.Array(ref(Endpoint)),
});

const integrations = Type.Unsafe<Record<string, string[]>>({
  type: 'object',
  additionalProperties: { type: 'array', items: { type: 'string' } },
  description: 'By project id; empty, because nothing outside is connected.',
});
export const ProjectsReply = Type.Object({
  projects: Type.Array(ref(ProjectListItem)),
  pagination: Type.Optional(ref(CursorPage)),
  applications: integrations,
  integrations,
});
export const SharedProjectsReply = Type.Object({
  projects: Type.Array(ref(ProjectListItem)),
  pagination: Type.Optional(ref(CursorPage)),
});

export function projectCreateBody(pgVersions: readonly number[]) {
  const project = Type.Object(
    {
      name: Type.Optional(projectName('Name; the id when left out.')),
      region_id: Type.Optional(Type.String({ minLength: 1, maxLength: 64, description: 'One of /regions.' })),
      pg_version: Type.Optional(
        Type.Unsafe<number>({
          enum: [...pgVersions],
          description: 'Postgres major version; 17 when left out.',
        }),
      ),
      store_passwords: Type.Optional(Type.Boolean({ description: 'Keep role passwords so that they can be shown.' })),
      history_retention_seconds: Type.Optional(historyRetention),
      provisioner: provisionerInput,
      org_id: Type.Optional(idOf('organization; needed when the key reaches several')),
      settings: Type.Optional(ref(ProjectSettings)),
      default_endpoint_settings: Type.Optional(ref(DefaultEndpointSettings)),
      autoscaling_limit_min_cu: Type.Optional(computeUnits('Smallest size of the first compute.')),
      autoscaling_limit_max_cu: Type.Optional(computeUnits('Largest size of the first compute.')),
      branch: Type.Optional(
        Type.Object(
          {
            name: Type.Optional(branchName('Name of the first branch; `main` when left out.')),
            database_name: Type.Optional(identifier('First database; `neondb` when left out.')),
            role_name: Type.Optional(identifier('Its owner; the database’s name and `_owner` when left out.')),
            annotations: Type.Optional(annotationValue),
          },
          closed,
        ),
      ),
    },
    closed,
  );
  return Type.Object({ project }, closed);
}

export const ProjectUpdateBody = Type.Object(
  {
    project: Type.Object(
      {
        name: Type.Optional(projectName('New name.')),
        settings: Type.Optional(ref(ProjectSettings)),
        default_endpoint_settings: Type.Optional(ref(DefaultEndpointSettings)),
        history_retention_seconds: Type.Optional(historyRetention),
      },
      closed,
    ),
  },
  closed,
);

const timeout = Type.Optional(
  Type.Integer({ minimum: 100, maximum: 30_000, description: 'Milliseconds; replies never need that long.' }),
);
export const SharedProjectsQuery = Type.Object({
  cursor: cursorQuery,
  limit: limitQuery(400, 10),
  search: searchQuery('name or id'),
  timeout,
});
export const ProjectsQuery = Type.Object({
  ...SharedProjectsQuery.properties,
  org_id: Type.Optional(idOf('organization')),
  recoverable: Type.Optional(
    Type.Boolean({
      default: false,
      description: 'List deleted projects that can be recovered, instead of the others.',
    }),
  ),
});
