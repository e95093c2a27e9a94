/**
 * What each operation needs of the scope of a key. An operation that is not listed needs everything, so that a new one
 * is closed to limited keys until somebody has thought about it. Reading is not listed where the reply holds secrets:
 * links in mails, keys of an auth provider, secrets of OAuth clients, addresses of webhooks.
 */
import type { Need } from '../../core/key-scope.ts';

const operations: Readonly<Record<Exclude<Need, 'everything'>, readonly string[]>> = {
  find: [
    'getActiveRegions',
    'getAuthDetails',
    'getCurrentUserOrganizations',
    'getOrganization',
    'getProject',
    'getProjectBranch',
    'getProjectBranchDatabase',
    'getProjectBranchRole',
    'getProjectEndpoint',
    'listProjectBranchDatabases',
    'listProjectBranchEndpoints',
    'listProjectBranchRoles',
    'listProjectBranches',
    'listProjectEndpoints',
    'listProjects',
  ],
  read: [
    'countProjectBranches',
    'getAvailablePreloadLibraries',
    'getBackup',
    'getConsumptionHistoryPerProject',
    'getConsumptionHistoryPerProjectV2',
    'getConsumptionHistoryPerBranchV2',
    'getCurrentUserInfo',
    'getOrganizationInvitations',
    'getOrganizationMember',
    'getOrganizationMembers',
    'getProjectBranchAiGateway',
    'getProjectBranchDataAPI',
    'getProjectBranchHistory',
    'getProjectBranchSchema',
    'getProjectBranchSchemaComparison',
    'getProjectBranchStorage',
    'getProjectEndpointMetrics',
    'getProjectJWKS',
    'getProjectOperation',
    'getSnapshotSchedule',
    'listDeleted',
    'listProjectBranchBuckets',
    'listProjectBranchCustomDomains',
    'listProjectBranchFunctions',
    'listProjectBranchTriggers',
    'listProjectEndpointLogs',
    'listProjectEndpointSessions',
    'listProjectExtensions',
    'listProjectMembers',
    'listProjectOperations',
    'listProjectPermissions',
    'listProjectSavedQueries',
    'listSharedProjects',
    'listSnapshots',
    'streamEvents',
  ],
  connect: ['getConnectionURI', 'getProjectBranchRolePassword', 'revealProjectBranchRolePassword'],
  make_branch: ['createProjectBranch'],
  change_branch: [
    'cancelProjectEndpointSession',
    'createProjectBranchDatabase',
    'createProjectBranchRole',
    'createProjectEndpoint',
    'deleteProjectBranch',
    'deleteProjectBranchDatabase',
    'deleteProjectBranchRole',
    'deleteProjectEndpoint',
    'resetProjectBranchRolePassword',
    'restartProjectEndpoint',
    'restoreProjectBranch',
    'startProjectEndpoint',
    'suspendProjectEndpoint',
    'terminateProjectEndpointSession',
    'updateProjectBranch',
    'updateProjectBranchDatabase',
    'updateProjectEndpoint',
  ],
};

const needs = new Map<string, Need>(
  Object.entries(operations).flatMap(([need, ids]) => ids.map((id) => [id, need as Need] as const)),
);

/** Every operation that some limited key may call. */
export const openOperations: ReadonlySet<string> = new Set(needs.keys());

export const needOf = (operationId: string | undefined): Need => needs.get(operationId ?? '') ?? 'everything';
