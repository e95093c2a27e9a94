/** Connection strings: to the wire, and the query that asks for one. */
import type { Static } from 'typebox';
import type { ConnectionUriInput } from '../../core/connection.ts';
import type { ConnectionDetails } from '../../core/connection-uri.ts';
import { asBranchId, asEndpointId } from '../../lib/ids.ts';
import type { ConnectionUriQuery, ConnectionDetails as DetailsSchema } from '../schemas/connection-uri.ts';

export function connectionView(details: ConnectionDetails): Static<typeof DetailsSchema> {
  return {
    connection_uri: details.uri,
    connection_parameters: {
      database: details.database,
      password: details.password,
      role: details.role,
      host: details.hostname,
      pooler_host: details.poolerHostname,
    },
  };
}

export function connectionUriInput(query: Static<typeof ConnectionUriQuery>): ConnectionUriInput {
  return {
    branchId: query.branch_id === undefined ? null : asBranchId(query.branch_id),
    endpointId: query.endpoint_id === undefined ? null : asEndpointId(query.endpoint_id),
    databaseName: query.database_name,
    roleName: query.role_name,
    pooled: query.pooled ?? false,
  };
}
