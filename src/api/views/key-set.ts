/** Key sets: row to wire, and back. */
import type { Static } from 'typebox';
import type { KeySet, KeySetInput } from '../../core/key-set.ts';
import { asBranchId } from '../../lib/ids.ts';
import type { JWKS, JwksCreateBody } from '../schemas/key-set.ts';
import { present, time } from './common.ts';
import { projectAddress } from './params.ts';

export function keySetView(row: KeySet): Static<typeof JWKS> {
  return {
    id: row.id,
    project_id: row.projectId,
    ...present({ branch_id: row.branchId }),
    jwks_url: row.jwksUrl,
    provider_name: row.providerName,
    ...present({ jwt_audience: row.jwtAudience }),
    role_names: [...row.roleNames],
    created_at: time(row.createdAt),
    updated_at: time(row.updatedAt),
  };
}

export function keySetInput(params: { project_id: string }, body: Static<typeof JwksCreateBody>): KeySetInput {
  return {
    ...projectAddress(params),
    branchId: body.branch_id === undefined ? null : asBranchId(body.branch_id),
    jwksUrl: body.jwks_url,
    providerName: body.provider_name,
    jwtAudience: body.jwt_audience ?? null,
    roleNames: body.role_names ?? null,
    skipRoleCreation: body.skip_role_creation ?? false,
  };
}
