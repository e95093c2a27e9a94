/** `catnap operations`: the work on a project, and how it ended. */
import { type Command, Option } from 'commander';
import type { GetProjectOperationReply, ListProjectOperationsReply } from '../kit/generated.ts';
import { waitFor } from '../kit/operations.ts';
import { inProject, wholeNumber } from '../kit/options.ts';
import type { RunCommand, Session } from '../kit/session.ts';
import { findProject, type InProject } from '../kit/targets.ts';

const columns = {
  id: 'id',
  action: 'action',
  status: 'status',
  branch_id: 'branch',
  endpoint_id: 'compute',
  created_at: 'created at',
  total_duration_ms: 'took (ms)',
  error: 'error',
};

export function addOperations(program: Command, run: RunCommand): void {
  const operations = program.command('operations').alias('operation').description('work on a project: list, get, wait');
  inProject(operations.command('list').description('list the work on a project, the newest first'))
    .addOption(new Option('--limit <number>', 'how many').argParser(wholeNumber).default(20))
    .action((options: InProject & { limit: number }) => run((session) => list(session, options)));
  for (const [verb, description] of [
    ['get', 'show one piece of work'],
    ['wait', 'wait until it has ended; exit code 1 if it failed'],
  ] as const) {
    inProject(operations.command(verb).description(description))
      .argument('<operation>', 'id of the operation')
      .action((id: string, options: InProject) => run((session) => show(session, id, options, verb === 'wait')));
  }
}

async function list(session: Session, options: InProject & { readonly limit: number }): Promise<undefined> {
  const { path } = await findProject(session, options);
  const query = { limit: options.limit };
  const { operations } = await session.client.get<ListProjectOperationsReply>(`${path}/operations`, query);
  session.writer.list(operations, columns, 'There are no operations.');
}

async function show(session: Session, id: string, options: InProject, untilItEnds: boolean): Promise<undefined> {
  const path = `${(await findProject(session, options)).path}/operations/${encodeURIComponent(id)}`;
  const { operation } = await session.client.get<GetProjectOperationReply>(path);
  if (untilItEnds) await waitFor(session, [operation]);
  const { operation: now } = await session.client.get<GetProjectOperationReply>(path);
  session.writer.record(now, columns);
}
