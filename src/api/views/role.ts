/** Roles: row to wire. The password is a separate argument, so that no list can leak one by accident. */
import type { Static } from 'typebox';
import type { Role } from '../../core/role.ts';
import type { RoleCreateBody, Role as RoleSchema } from '../schemas/role.ts';
import { present, time } from './common.ts';
import { branchAddress } from './params.ts';

export function roleView(row: Role, password: string | null = null): Static<typeof RoleSchema> {
  return {
    branch_id: row.branchId,
    name: row.name,
    ...present({ password }),
    protected: row.protected,
    authentication_method: row.noLogin ? 'no_login' : 'password',
    created_at: time(row.createdAt),
    updated_at: time(row.updatedAt),
  };
}

export function roleInput(params: { project_id: string; branch_id: string }, { role }: Static<typeof RoleCreateBody>) {
  return { ...branchAddress(params), name: role.name, noLogin: role.no_login ?? false };
}
