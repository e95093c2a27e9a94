/** Clients that wait to be let in: row to wire. */
import type { Static } from 'typebox';
import type { LoginChoice, WaitingLogin as Row } from '../../core/waiting-login.ts';
import { asEndpointId, asProjectId } from '../../lib/ids.ts';
import type { WaitingLogin } from '../schemas/unversioned.ts';
import { time } from './common.ts';

export function waitingLoginView(row: Row): Static<typeof WaitingLogin> {
  return {
    state: stateOf(row),
    client_address: row.clientAddress,
    application_name: row.applicationName,
    role_name: row.askedRole,
    database_name: row.askedDatabase,
    created_at: time(row.createdAt),
    expires_at: time(row.expiresAt),
  };
}

function stateOf({ decidedAt, endpointId, takenAt }: Row) {
  if (decidedAt === null) return 'waiting';
  if (endpointId === null) return 'refused';
  return takenAt === null ? 'confirmed' : 'connected';
}

export const loginChoice = (body: {
  project_id: string;
  endpoint_id: string;
  role_name: string;
  database_name: string;
}): LoginChoice => ({
  projectId: asProjectId(body.project_id),
  endpointId: asEndpointId(body.endpoint_id),
  role: body.role_name,
  database: body.database_name,
});
