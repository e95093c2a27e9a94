/** `catnap psql <endpoint>`: a psql session on a compute, with the connection string fetched from the API. */
import type { Command } from 'commander';
import { ApiRefusal } from '../kit/client.ts';
import { CliFailure } from '../kit/failure.ts';
import type {
  Endpoint,
  GetConnectionURIReply,
  GetProjectEndpointReply,
  ListProjectBranchDatabasesReply,
  ListProjectBranchRolesReply,
} from '../kit/generated.ts';
import { runPsql } from '../kit/run-psql.ts';
import type { RunCommand, Session } from '../kit/session.ts';

interface Options {
  readonly project?: string;
  readonly database?: string;
  readonly role?: string;
  readonly pooled?: boolean;
  readonly print?: boolean;
}

export function addPsql(program: Command, run: RunCommand): void {
  program
    .command('psql')
    .description('open psql on a compute, waking it if it naps')
    .argument('<endpoint>', 'id of the endpoint, such as ep-…')
    .argument('[psql arguments...]', 'handed to psql; write -- before them')
    .option('--project <id>', 'search this project only')
    .option('--database <name>', 'database (default: the only one, or the oldest)')
    .option('--role <name>', 'role (default: the owner of the database)')
    .option('--pooled', 'go through the pooler')
    .option('--print', 'print the connection string instead; --json does so too')
    .action((endpoint: string, extra: string[], options: Options) =>
      run((session) => openPsql(session, endpoint, extra, options)),
    );
}

async function openPsql(session: Session, endpointId: string, extra: string[], options: Options) {
  const endpoint = await findEndpoint(session, endpointId, options.project);
  const uri = await findUri(session, endpoint, options);
  if (session.format === 'json') {
    session.writer.record({ endpoint_id: endpoint.id, project_id: endpoint.project_id, uri }, { uri: 'uri' });
    return undefined;
  }
  if (!options.print) return runPsql(uri, extra);
  session.writer.remark(uri);
  return undefined;
}

async function findEndpoint({ client }: Session, id: string, projectId?: string): Promise<Endpoint> {
  const projectIds = projectId ? [projectId] : (await client.listProjects()).map((project) => project.id);
  for (const project of projectIds) {
    try {
      const path = `/projects/${encodeURIComponent(project)}/endpoints/${encodeURIComponent(id)}`;
      return (await client.get<GetProjectEndpointReply>(path)).endpoint;
    } catch (error) {
      if (!(error instanceof ApiRefusal && error.status === 404)) throw error;
    }
  }
  const where = projectId ? `project ${projectId}` : `the ${projectIds.length} projects that the key reaches`;
  throw new CliFailure(`there is no endpoint ${id} in ${where}`);
}

async function findUri({ client }: Session, endpoint: Endpoint, options: Options): Promise<string> {
  const project = `/projects/${endpoint.project_id}`;
  const branch = `${project}/branches/${endpoint.branch_id}`;
  const { databases } = await client.get<ListProjectBranchDatabasesReply>(`${branch}/databases`);
  const database = options.database ? databases.find(({ name }) => name === options.database) : databases[0];
  if (database === undefined) throw new CliFailure(missing('database', options.database, databases));
  const { roles } = await client.get<ListProjectBranchRolesReply>(`${branch}/roles`);
  const role = roles.find(({ name }) => name === (options.role ?? database.owner_name));
  if (role === undefined) throw new CliFailure(missing('role', options.role ?? database.owner_name, roles));
  const { uri } = await client.get<GetConnectionURIReply>(`${project}/connection_uri`, {
    branch_id: endpoint.branch_id,
    endpoint_id: endpoint.id,
    database_name: database.name,
    role_name: role.name,
    ...(options.pooled && { pooled: 'true' }),
  });
  return uri;
}

function missing(noun: string, asked: string | undefined, present: readonly { readonly name: string }[]): string {
  if (present.length === 0) return `the branch has no ${noun}`;
  return `there is no ${noun} ${asked ?? ''}; there is: ${present.map(({ name }) => name).join(', ')}`;
}
