/** Counts over the whole installation: nothing that names a tenant's objects. */
import { countEndpointsByState } from '../db/endpoints.ts';
import { countAllProjects } from '../db/projects.ts';
import type { Scope } from './context.ts';

export interface SystemStatus {
  readonly projects: number;
  readonly endpoints: Readonly<Record<'init' | 'active' | 'idle', number>>;
}

/** Also checks that the system database answers. */
export async function getSystemStatus(scope: Scope): Promise<SystemStatus> {
  const endpoints = { init: 0, active: 0, idle: 0 };
  for (const { state, count } of await countEndpointsByState(scope.sql)) endpoints[state] = count;
  return { projects: await countAllProjects(scope.sql), endpoints };
}
