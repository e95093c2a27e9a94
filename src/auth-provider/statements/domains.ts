/** Rows of `stack_domains`: the origins that a project trusts with its codes and redirects. */
import type { Sql } from '../../db/client.ts';

export interface DomainRow {
  readonly domain: string;
  readonly handlerPath: string;
}

export async function selectDomains(sql: Sql, projectId: string): Promise<DomainRow[]> {
  return sql<DomainRow[]>`
    select domain, handler_path from stack_domains where project_id = ${projectId} order by domain`;
}

/** False when the project has the most domains allowed; a domain that already exists stays. */
export async function insertDomain(
  sql: Sql,
  { projectId, domain, domainsMax }: { projectId: string; domain: string; domainsMax: number },
): Promise<boolean> {
  const [there] = await sql<{ count: number }[]>`
    select count(*)::int as count from stack_domains where project_id = ${projectId} and domain <> ${domain}`;
  if ((there?.count ?? 0) >= domainsMax) return false;
  await sql`insert into stack_domains ${sql({ projectId, domain })} on conflict do nothing`;
  return true;
}

export async function deleteDomain(sql: Sql, projectId: string, domain: string): Promise<void> {
  await sql`delete from stack_domains where project_id = ${projectId} and domain = ${domain}`;
}

export async function replaceDomains(sql: Sql, projectId: string, domains: readonly DomainRow[]): Promise<void> {
  await sql`delete from stack_domains where project_id = ${projectId}`;
  for (const { domain, handlerPath } of domains) {
    await sql`insert into stack_domains ${sql({ projectId, domain, handlerPath })} on conflict do nothing`;
  }
}
