/** Endpoints: row to wire, request to input. */
import type { Static } from 'typebox';
import type { Config } from '../../config.ts';
import { endpointHost, proxyHost } from '../../core/connection-uri.ts';
import type { Endpoint, EndpointOptions } from '../../core/endpoint.ts';
import { asBranchId } from '../../ids.ts';
import type { BranchEndpointOptions, EndpointCreateBody, Endpoint as EndpointSchema } from '../schemas/endpoint.ts';
import { optionalTime, present, time } from './common.ts';

type EndpointView = Static<typeof EndpointSchema>;

export function endpointView(config: Config, row: Endpoint): EndpointView {
  return {
    id: row.id,
    host: endpointHost(config, row.id),
    ...present({ name: row.name }),
    project_id: row.projectId,
    branch_id: row.branchId,
    autoscaling_limit_min_cu: row.minCu,
    autoscaling_limit_max_cu: row.maxCu,
    region_id: config.region,
    type: row.type,
    current_state: row.currentState,
    ...present({ pending_state: row.pendingState }),
    settings: row.settings,
    pooler_enabled: row.poolerEnabled,
    pooler_mode: 'transaction',
    disabled: row.disabled,
    passwordless_access: row.passwordlessAccess,
    ...present({ last_active: optionalTime(row.lastActive) }),
    creation_source: 'console',
    created_at: time(row.createdAt),
    updated_at: time(row.updatedAt),
    ...present({ started_at: optionalTime(row.startedAt), suspended_at: optionalTime(row.suspendedAt) }),
    proxy_host: proxyHost(config),
    suspend_timeout_seconds: row.suspendTimeoutSeconds,
    provisioner: row.provisioner,
  };
}

export function endpointOptions(body: Static<typeof BranchEndpointOptions>): EndpointOptions {
  return {
    type: body.type,
    minCu: body.autoscaling_limit_min_cu,
    maxCu: body.autoscaling_limit_max_cu,
    suspendTimeoutSeconds: body.suspend_timeout_seconds,
    settings: body.settings,
    provisioner: body.provisioner,
  };
}

export function endpointInput({ endpoint }: Static<typeof EndpointCreateBody>) {
  return {
    ...endpointOptions(endpoint),
    branchId: asBranchId(endpoint.branch_id),
    name: endpoint.name,
    regionId: endpoint.region_id,
    poolerEnabled: endpoint.pooler_enabled,
    poolerMode: endpoint.pooler_mode,
    disabled: endpoint.disabled,
    passwordlessAccess: endpoint.passwordless_access,
  };
}
