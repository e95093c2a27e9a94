/**
 * Operations of the published API that Catnap does not offer, with the reason that a caller gets. A sweep over the
 * contract fails when an operation is neither served nor listed here, or both.
 */

export interface NotOffered {
  /** Ends the sentence "… is not offered by Catnap; …". */
  readonly why: string;
  /** It is meant to come: the sentence says "yet". */
  readonly isPlanned?: boolean;
  /** Method and path by operationId, as the contract writes them. */
  readonly operations: Readonly<Record<string, string>>;
}

const project = '/projects/{project_id}';
const branch = `${project}/branches/{branch_id}`;
const organization = '/organizations/{org_id}';

export const notOffered: readonly NotOffered[] = [
  {
    why: 'an installation has one user, its operator; for others, create API keys of the organization or of one project',
    operations: {
      updateOrganizationMember: `PATCH ${organization}/members/{member_id}`,
      removeOrganizationMember: `DELETE ${organization}/members/{member_id}`,
      createOrganizationInvitations: `POST ${organization}/invitations`,
      setProjectMemberRole: `PUT ${project}/members/{member_id}/role`,
      removeProjectMemberRole: `DELETE ${project}/members/{member_id}/role`,
      grantPermissionToProject: `POST ${project}/permissions`,
      revokePermissionFromProject: `DELETE ${project}/permissions/{permission_id}`,
    },
  },
  {
    why: 'an installation has one organization, so there is none to transfer a project to',
    operations: {
      createProjectTransferRequest: `POST ${project}/transfer_requests`,
      acceptProjectTransferRequest: `PUT ${project}/transfer_requests/{request_id}`,
      transferProjectsFromOrgToOrg: 'POST /organizations/{source_org_id}/projects/transfer',
      transferProjectsFromUserToOrg: 'POST /users/me/projects/transfer',
    },
  },
  {
    why: 'nothing is billed',
    operations: {
      getOrganizationSpendingLimit: `GET ${organization}/billing/spending_limit`,
      setOrganizationSpendingLimit: `PUT ${organization}/billing/spending_limit`,
      deleteOrganizationSpendingLimit: `DELETE ${organization}/billing/spending_limit`,
    },
  },
  {
    why: 'there are no private endpoints; `allowed_ips` in the settings of a project limits who can connect',
    operations: {
      listProjectVPCEndpoints: `GET ${project}/vpc_endpoints`,
      assignProjectVPCEndpoint: `POST ${project}/vpc_endpoints/{vpc_endpoint_id}`,
      deleteProjectVPCEndpoint: `DELETE ${project}/vpc_endpoints/{vpc_endpoint_id}`,
      listOrganizationVPCEndpointsAllRegions: `GET ${organization}/vpc/vpc_endpoints`,
      listOrganizationVPCEndpoints: `GET ${organization}/vpc/region/{region_id}/vpc_endpoints`,
      getOrganizationVPCEndpointDetails: `GET ${organization}/vpc/region/{region_id}/vpc_endpoints/{vpc_endpoint_id}`,
      assignOrganizationVPCEndpoint: `POST ${organization}/vpc/region/{region_id}/vpc_endpoints/{vpc_endpoint_id}`,
      deleteOrganizationVPCEndpoint: `DELETE ${organization}/vpc/region/{region_id}/vpc_endpoints/{vpc_endpoint_id}`,
    },
  },
  {
    why: 'there is no REST interface to tables; SQL over HTTP is at `/sql`',
    operations: {
      createProjectBranchDataAPI: `POST ${branch}/data-api/{database_name}`,
      updateProjectBranchDataAPI: `PATCH ${branch}/data-api/{database_name}`,
      deleteProjectBranchDataAPI: `DELETE ${branch}/data-api/{database_name}`,
    },
  },
  {
    why: 'there is no object storage',
    operations: {
      createProjectBranchBucket: `POST ${branch}/buckets`,
      deleteProjectBranchBucket: `DELETE ${branch}/buckets/{bucket_name}`,
      listProjectBranchBucketObjects: `GET ${branch}/buckets/{bucket_name}/objects`,
      deleteProjectBranchBucketObject: `DELETE ${branch}/buckets/{bucket_name}/objects/{object_key}`,
      getProjectBranchBucketObject: `GET ${branch}/buckets/{bucket_name}/objects/{object_key}/download`,
      deleteProjectBranchBucketObjectsByPrefix: `DELETE ${branch}/buckets/{bucket_name}/objects-by-prefix`,
      presignProjectBranchBucketObject: `POST ${branch}/buckets/{bucket_name}/objects/{object_key}/presign`,
    },
  },
  {
    why: 'Catnap runs Postgres, and no other code',
    operations: {
      getProjectBranchFunction: `GET ${branch}/functions/{slug}`,
      updateProjectBranchFunction: `PATCH ${branch}/functions/{slug}`,
      deleteProjectBranchFunction: `DELETE ${branch}/functions/{slug}`,
      createProjectBranchFunctionDeployment: `POST ${branch}/functions/{slug}/deployments`,
      createProjectBranchTrigger: `POST ${branch}/triggers`,
      getProjectBranchTrigger: `GET ${branch}/triggers/{trigger_id}`,
      updateProjectBranchTrigger: `PATCH ${branch}/triggers/{trigger_id}`,
      deleteProjectBranchTrigger: `DELETE ${branch}/triggers/{trigger_id}`,
      registerProjectBranchCustomDomain: `POST ${branch}/custom-domains`,
      deleteProjectBranchCustomDomain: `DELETE ${branch}/custom-domains/{domain}`,
    },
  },
  {
    why: 'these credentials are for object storage, functions and models, which are not here; a branch has roles and passwords',
    operations: {
      // Even the list: clients take a list, also an empty one, as a sign that they can make one.
      listCredentials: `GET ${branch}/credentials`,
      createCredential: `POST ${branch}/credentials`,
      revokeCredential: `DELETE ${branch}/credentials/{token_id}`,
      revealCredential: `POST ${branch}/credentials/{token_id}/reveal`,
      rotateCredential: `POST ${branch}/credentials/{token_id}/rotate`,
    },
  },
  {
    why: 'logs of servers are files on the machine and cannot be searched through the API',
    operations: {
      queryProjectBranchLogs: `POST ${branch}/logs/query`,
      listProjectBranchLogFields: `GET ${branch}/logs/fields`,
      listProjectBranchLogFieldValues: `GET ${branch}/logs/fields/{field_name}/values`,
    },
  },
  {
    why: 'databases are not analyzed for advice',
    operations: {
      getProjectAdvisorSecurityIssues: `GET ${project}/advisors`,
    },
  },
  {
    why: 'data is not masked; a branch with `init_source` `schema-only` has none',
    operations: {
      createProjectBranchAnonymized: `POST ${project}/branch_anonymized`,
      getMaskingRules: `GET ${branch}/masking_rules`,
      updateMaskingRules: `PATCH ${branch}/masking_rules`,
      getAnonymizedBranchStatus: `GET ${branch}/anonymized_status`,
      startAnonymization: `POST ${branch}/anonymize`,
    },
  },
  {
    why: 'mail is sent through the mail server of the installation',
    operations: {
      getNeonAuthEmailServer: `GET ${project}/auth/email_server`,
      updateNeonAuthEmailServer: `PATCH ${project}/auth/email_server`,
      getNeonAuthEmailProvider: `GET ${branch}/auth/email_provider`,
      updateNeonAuthEmailProvider: `PATCH ${branch}/auth/email_provider`,
      sendNeonAuthTestEmail: `POST ${branch}/auth/send_test_email`,
      sendNeonAuthEmailProviderTest: `POST ${branch}/auth/email_provider/test`,
    },
  },
  {
    why: 'the setting belongs to the provider `better_auth`; the provider here is `stack`, which has a dashboard of its own',
    operations: {
      updateNeonAuthConfig: `PATCH ${branch}/auth/config`,
      updateNeonAuthUserRole: `PUT ${branch}/auth/users/{auth_user_id}/role`,
      getNeonAuthEmailAndPasswordConfig: `GET ${branch}/auth/email_and_password`,
      updateNeonAuthEmailAndPasswordConfig: `PATCH ${branch}/auth/email_and_password`,
      getNeonAuthAllowLocalhost: `GET ${branch}/auth/allow_localhost`,
      updateNeonAuthAllowLocalhost: `PATCH ${branch}/auth/allow_localhost`,
      getNeonAuthPluginConfigs: `GET ${branch}/auth/plugins`,
      updateNeonAuthOrganizationPlugin: `PATCH ${branch}/auth/plugins/organization`,
      updateNeonAuthMagicLinkPlugin: `PATCH ${branch}/auth/plugins/magic-link`,
      getNeonAuthPhoneNumberPlugin: `GET ${branch}/auth/plugins/phone-number`,
      updateNeonAuthPhoneNumberPlugin: `PATCH ${branch}/auth/plugins/phone-number`,
      getNeonAuthWebhookConfig: `GET ${branch}/auth/webhooks`,
      updateNeonAuthWebhookConfig: `PUT ${branch}/auth/webhooks`,
    },
  },
];
