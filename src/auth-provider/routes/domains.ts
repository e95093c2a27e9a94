/** Trusted domains of a project, as the control plane manages them. */
import { Type } from '@fastify/type-provider-typebox';
import { requireDomain } from '../core/domains.ts';
import type { AuthProviderParts } from '../core/parts.ts';
import type { AuthProviderApp } from '../http/app-type.ts';
import { plain } from '../http/errors.ts';
import { closed } from '../http/schemas.ts';
import { deleteDomain, insertDomain, selectDomains } from '../statements/domains.ts';
import { callerOf, guarded } from './access.ts';

export const domainsMax = 1_000;

const DomainBody = Type.Object({ domain: Type.String({ maxLength: 300 }) }, closed);
const DomainParams = Type.Object({ domain: Type.String({ maxLength: 300 }) });

const admin = guarded('admin');
const path = '/integrations/neon/domains';

export function domainRoutes(app: AuthProviderApp, parts: AuthProviderParts): void {
  const { sql } = parts.database;

  app.get(path, admin, async (request) => {
    const domains = await selectDomains(sql, callerOf(request).project.id);
    return { items: domains.map(({ domain }) => ({ domain })), is_paginated: false };
  });

  app.post(path, { ...admin, schema: { ...admin.schema, body: DomainBody } }, async (request, reply) => {
    const domain = requireDomain(request.body.domain, 'body.domain');
    const { project } = callerOf(request);
    if (!(await insertDomain(sql, { projectId: project.id, domain, domainsMax }))) {
      throw plain(400, `A project has ${domainsMax} trusted domains at most.`);
    }
    return reply.status(201).send({ domain });
  });

  app.delete(`${path}/:domain`, { ...admin, schema: { ...admin.schema, params: DomainParams } }, async (request) => {
    await deleteDomain(sql, callerOf(request).project.id, request.params.domain);
    return { success: true };
  });
}
