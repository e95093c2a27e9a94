/** What projects and branches consumed. Nothing here wakes a compute. */
import type { FastifyRequest } from 'fastify';
import {
  type Consumption,
  type Granularity,
  getConsumption,
  type ConsumptionQuery as Wanted,
} from '../../core/consumption.ts';
import { asOrganizationId } from '../../lib/ids.ts';
import type { App } from '../kit/app-type.ts';
import type { ApiParts } from '../kit/parts.ts';
import {
  BranchConsumptionQuery,
  BranchConsumptionReply,
  ConsumptionQuery,
  ConsumptionReply,
  ConsumptionV2Query,
  ConsumptionV2Reply,
} from '../schemas/consumption.ts';
import { errorReply } from '../schemas/error.ts';
import { namesIn, pageView, periodsView, requireMetrics, timeframe, timeframeV2 } from '../views/consumption.ts';
import { ask } from './command.ts';

const tags = ['Consumption'];

export function consumptionRoutes(app: App, parts: ApiParts): void {
  const now = () => parts.clock.now();
  const find = (request: FastifyRequest, query: RawQuery, by: Wanted['by'], limit: number): Promise<Consumption> =>
    ask(parts, request, (scope, caller) => getConsumption(scope, caller, wanted(query, by, limit)));

  const perProject = {
    tags,
    operationId: 'getConsumptionHistoryPerProject',
    summary: 'What projects consumed',
    description: 'Time, CPU, written bytes and storage by hour, day or month.',
    querystring: ConsumptionQuery,
    response: { 200: ConsumptionReply, ...errorReply },
  };
  app.get('/consumption_history/projects', { schema: perProject }, async (request) => {
    const found = await find(request, request.query, 'project', 10);
    const projects = found.subjects.map((subject) => ({
      project_id: subject.projectId,
      periods: periodsView(found, subject, now(), timeframe),
    }));
    return { projects, ...pageView(found) };
  });

  const perProjectV2 = {
    tags,
    operationId: 'getConsumptionHistoryPerProjectV2',
    summary: 'What projects consumed, by metric',
    description: 'Compute units and storage. Metrics that are not measured here are left out of the reply.',
    querystring: ConsumptionV2Query,
    response: { 200: ConsumptionV2Reply, ...errorReply },
  };
  app.get('/consumption_history/v2/projects', { schema: perProjectV2 }, async (request) => {
    const names = requireMetrics(request.query.metrics);
    const found = await find(request, request.query, 'project', 10);
    const projects = found.subjects.map((subject) => ({
      project_id: subject.projectId,
      periods: periodsView(found, subject, now(), timeframeV2(names)),
    }));
    return { projects, ...pageView(found) };
  });

  const perBranch = {
    tags,
    operationId: 'getConsumptionHistoryPerBranchV2',
    summary: 'What branches consumed, by metric',
    description: 'Of the given projects, also of branches that are gone.',
    querystring: BranchConsumptionQuery,
    response: { 200: BranchConsumptionReply, ...errorReply },
  };
  app.get('/consumption_history/v2/branches', { schema: perBranch }, async (request) => {
    const names = requireMetrics(request.query.metrics);
    const found = await find(request, request.query, 'branch', 100);
    const branches = found.subjects.map((subject) => ({
      project_id: subject.projectId,
      branch_id: subject.branchId ?? '',
      periods: periodsView(found, subject, now(), timeframeV2(names)),
    }));
    return { branches, ...pageView(found) };
  });
}

interface RawQuery {
  readonly cursor?: string;
  readonly limit?: number;
  readonly from: string;
  readonly to: string;
  readonly granularity: Granularity;
  readonly org_id?: string;
  readonly project_ids?: string | string[];
  readonly branch_ids?: string | string[];
}

function wanted(query: RawQuery, by: Wanted['by'], limit: number): Wanted {
  return {
    organizationId: query.org_id === undefined ? null : asOrganizationId(query.org_id),
    projectIds: namesIn(query.project_ids),
    branchIds: namesIn(query.branch_ids),
    from: new Date(query.from),
    to: new Date(query.to),
    granularity: query.granularity,
    by,
    cursor: query.cursor ?? null,
    limit: query.limit ?? limit,
  };
}
