/** Path parameters to branded ids. */
import { asBranchId, asEndpointId, asOperationId, asOrganizationId, asProjectId } from '../../lib/ids.ts';

export const projectAddress = (params: { project_id: string }) => ({ projectId: asProjectId(params.project_id) });

export const branchAddress = (params: { project_id: string; branch_id: string }) => ({
  ...projectAddress(params),
  branchId: asBranchId(params.branch_id),
});

export const endpointAddress = (params: { project_id: string; endpoint_id: string }) => ({
  ...projectAddress(params),
  endpointId: asEndpointId(params.endpoint_id),
});

export const operationAddress = (params: { project_id: string; operation_id: string }) => ({
  ...projectAddress(params),
  operationId: asOperationId(params.operation_id),
});

export const databaseAddress = (params: { project_id: string; branch_id: string; database_name: string }) => ({
  ...branchAddress(params),
  name: params.database_name,
});

export const roleAddress = (params: { project_id: string; branch_id: string; role_name: string }) => ({
  ...branchAddress(params),
  name: params.role_name,
});

export const organizationAddress = (params: { org_id: string }) => asOrganizationId(params.org_id);
