/** Creates a project with its first branch, role, database and compute, in one transaction. */

import type { OrganizationRow } from '../db/accounts.ts';
import { insertBranch } from '../db/branches.ts';
import { insertDatabase } from '../db/databases.ts';
import { countProjects, insertProject, type NewProject, type ProjectSettings } from '../db/projects.ts';
import { daySeconds } from '../lib/clock.ts';
import { CatnapError, invalid, withDetails } from '../lib/errors.ts';
import { newBranchId, newProjectId, newSecret, type OrganizationId } from '../lib/ids.ts';
import { type Caller, resolveOrganization } from './access.ts';
import type { Branch } from './branch.ts';
import { type ConnectionDetails, connectionDetails } from './connection-uri.ts';
import type { CommandScope } from './context.ts';
import { type BranchDatabase, requireDatabaseName } from './database.ts';
import { type Endpoint, insertFirstEndpoint } from './endpoint.ts';
import { requirePreloadLibraries } from './endpoint-settings.ts';
import { branchKey, enqueue, type Operation } from './operation.ts';
import { requireMaintenanceWindow } from './pending-update.ts';
import { planOf } from './plan.ts';
import {
  adminSecretSealContext,
  type EndpointDefaultsInput,
  mergeAllowedIps,
  type Project,
  resolveEndpointDefaults,
} from './project.ts';
import { insertNewRole, type Role, requireRoleName } from './role.ts';
import { requireProvisioner, requireSingleValues } from './single-values.ts';

export interface ProjectInput {
  readonly name?: string | undefined;
  readonly organizationId: OrganizationId | null;
  readonly regionId?: string | undefined;
  readonly pgVersion?: number | undefined;
  readonly storePasswords?: boolean | undefined;
  readonly historyRetentionSeconds?: number | undefined;
  readonly provisioner?: string | undefined;
  /** As the request has them; its schema has checked them. */
  readonly settings?: Partial<ProjectSettings> | undefined;
  readonly endpointDefaults: EndpointDefaultsInput;
  readonly branchName?: string | undefined;
  readonly databaseName?: string | undefined;
  readonly roleName?: string | undefined;
  readonly annotation: Readonly<Record<string, string>>;
}

export interface CreatedProject {
  readonly project: Project;
  readonly branch: Branch;
  readonly endpoint: Endpoint;
  readonly role: Role;
  readonly password: string;
  readonly database: BranchDatabase;
  readonly operations: readonly Operation[];
  readonly connection: ConnectionDetails;
}

export const defaultPgVersion = 17;
const defaultHistorySeconds = daySeconds;
export const initialDatabase = 'neondb';
export const initialOwner = (database: string) => `${database}_owner`;
const initialBranch = 'main';

const initialSettings: ProjectSettings = {
  allowed_ips: { ips: [], protected_branches_only: false },
  enable_logical_replication: false,
  maintenance_window: { weekdays: [7], start_time: '06:00', end_time: '07:00' },
  block_public_connections: false,
  allow_outbound_connections: false,
  block_vpc_connections: false,
  hipaa: false,
};

/** The rows are written in one round trip: none of them needs what the database answers to another. */
export async function createProject(scope: CommandScope, caller: Caller, input: ProjectInput): Promise<CreatedProject> {
  if (caller.kind === 'project') throw new CatnapError('forbidden', 'not allowed for project-scoped API keys');
  const organization = await resolveOrganization(scope, caller, input.organizationId);
  await requireRoomForProject(scope, organization);
  const names = initialNames(input);
  const wanted = newProject(scope, caller, organization, input);
  const [projectId, branchId] = [wanted.id, newBranchId()];
  const of = { projectId, branchId };
  // Sent together, carried out in this order.
  const [project, branch, { role, password }, database, create, { endpoint, operations }] = await Promise.all([
    insertProject(scope.tx, wanted, scope.config.uids?.firstTenant ?? null),
    insertBranch(scope.tx, {
      id: branchId,
      projectId,
      name: names.branch,
      parentId: null,
      parentTimestamp: null,
      isDefault: true,
      protected: false,
      initSource: 'parent-data',
      expiresAt: null,
      annotation: input.annotation,
      createdBy: caller.userId,
    }),
    insertNewRole(scope, { ...of, name: names.role, noLogin: false, storePassword: wanted.storePasswords }),
    insertDatabase(scope.tx, { branchId, name: names.database, ownerName: names.role }),
    enqueue(scope, 'create_timeline', { ...of, exclusive: [branchKey(branchId)] }),
    insertFirstEndpoint(scope, wanted, branchId, planOf(organization.plan)),
  ]);
  const target = {
    endpointId: endpoint.id,
    databaseName: database.name,
    roleName: role.name,
    password: password ?? '',
    pooled: false,
  };
  return {
    project,
    branch,
    endpoint,
    role,
    password: target.password,
    database,
    operations: [create, ...operations],
    connection: connectionDetails(scope.config, target),
  };
}

function initialNames(input: ProjectInput) {
  const database = input.databaseName ?? initialDatabase;
  const role = input.roleName ?? initialOwner(database);
  requireDatabaseName(database, 'body.project.branch.database_name');
  requireRoleName(role, 'body.project.branch.role_name');
  const branch = input.branchName ?? initialBranch;
  if (branch.trim() === '') throw invalid('invalid request: body.project.branch.name must not be blank');
  return { database, role, branch };
}

function newProject(
  scope: CommandScope,
  caller: Caller,
  organization: OrganizationRow,
  input: ProjectInput,
): NewProject {
  const { config } = scope;
  const pgVersion = input.pgVersion ?? defaultPgVersion;
  if (!config.pgVersions.includes(pgVersion)) {
    throw invalid(
      `invalid request: body.project.pg_version must be one of ${config.pgVersions.join(', ')}; ` +
        `other majors need a directory of binaries in CATNAP_PG_BIN_<major>`,
    );
  }
  if (input.regionId !== undefined && input.regionId !== config.region) {
    throw invalid(`invalid request: body.project.region_id must be ${config.region}`);
  }
  requireProvisioner(input.provisioner, 'body.project.provisioner');
  requireSingleValues(input.settings);
  requirePreloadLibraries(input.settings?.preload_libraries, 'body.project.settings.preload_libraries', config);
  requireMaintenanceWindow(input.settings?.maintenance_window);
  const id = newProjectId();
  const name = input.name ?? id;
  if (name.trim() === '') throw invalid('invalid request: body.project.name must not be blank');
  return {
    id,
    organizationId: organization.id,
    ownerId: caller.userId,
    name,
    regionId: config.region,
    pgVersion,
    storePasswords: input.storePasswords ?? true,
    historyRetentionSeconds: input.historyRetentionSeconds ?? defaultHistorySeconds,
    settings: {
      ...initialSettings,
      ...input.settings,
      allowed_ips: mergeAllowedIps(initialSettings, input.settings),
    },
    defaultEndpointSettings: resolveEndpointDefaults(scope, organization, null, input.endpointDefaults),
    adminSecret: scope.box.seal(newSecret(), adminSecretSealContext(id)),
  };
}

export async function requireRoomForProject(scope: CommandScope, organization: OrganizationRow): Promise<void> {
  const max = planOf(organization.plan).projectsMax;
  if (max !== null && (await countProjects(scope.tx, organization.id)) >= max) {
    throw new CatnapError('projects_limit', withDetails('projects limit exceeded', { limit: max }));
  }
}
