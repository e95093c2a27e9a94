/** `catnap deleted`, `recover` and `purge`: what was deleted, until it is gone for good. */
import type { Command } from 'commander';
import { confirm } from '../kit/confirm.ts';
import { CliFailure, usageExitCode } from '../kit/failure.ts';
import type { DeletedThing, ListDeletedReply } from '../kit/generated.ts';
import type { RunCommand, Session } from '../kit/session.ts';
import { inUnits } from '../kit/units.ts';

interface PurgeOptions {
  readonly all?: boolean;
  readonly yes?: boolean;
}

const argument = 'id or name of a deleted project or branch';

export function addRecovery(program: Command, run: RunCommand): void {
  program
    .command('deleted')
    .description('deleted projects and branches that can be recovered')
    .action(() => run(showDeleted));
  program
    .command('recover')
    .description('bring a deleted project or branch back, with everything it had')
    .argument('<what>', argument)
    .action((what: string) => run((session) => recover(session, what)));
  program
    .command('purge')
    .description('remove a deleted project or branch for good, and free its space')
    .argument('[what]', argument)
    .option('--all', 'everything that was deleted')
    .option('--yes', 'do not ask')
    .action((what: string | undefined, options: PurgeOptions) => run((session) => purge(session, what, options)));
}

/** What was deleted last comes first. */
const list = async ({ client }: Session) => (await client.get<ListDeletedReply>('/deleted')).deleted;

async function showDeleted(session: Session): Promise<undefined> {
  const deleted = await list(session);
  if (session.format === 'json') {
    session.writer.list(deleted, {}, '');
    return;
  }
  const rows = deleted.map((thing) => ({ ...thing, id: idOf(thing), size: sizeOf(thing) }));
  const columns = {
    kind: 'kind',
    id: 'id',
    name: 'name',
    project_name: 'project',
    size: 'data',
    deleted_at: 'deleted',
    recoverable_until: 'recoverable until',
  };
  session.writer.list(rows, columns, 'Nothing that was deleted can be recovered.');
}

async function recover(session: Session, what: string): Promise<undefined> {
  const thing = find(await list(session), what);
  await session.client.post(`${pathOf(thing)}/recover`, {});
  session.writer.record({ recovered: describe(thing), id: idOf(thing) }, { recovered: 'recovered', id: 'id' });
}

async function purge(session: Session, what: string | undefined, { all, yes }: PurgeOptions): Promise<undefined> {
  if ((what === undefined) === (all === undefined)) {
    throw new CliFailure('name what to purge, or add --all; `catnap deleted` lists what there is', usageExitCode);
  }
  const deleted = await list(session);
  // Children were deleted before their parents, and go before them.
  const chosen = what === undefined ? [...deleted].reverse() : [find(deleted, what)];
  const { parts, writer, client } = session;
  if (chosen.length === 0) {
    writer.remark('There is nothing to purge.');
    return;
  }
  if (!yes) {
    for (const thing of chosen) writer.remark(`${describe(thing)}, ${sizeOf(thing) ?? 'of unknown size'}`);
    const them = chosen.length === 1 ? 'it' : `these ${chosen.length}`;
    if (!(await confirm(parts, `Remove ${them} for good?`))) throw new CliFailure('nothing was purged');
  }
  for (const thing of chosen) await client.post(`${pathOf(thing)}/purge`, {});
  const rows = chosen.map((thing) => ({ purged: describe(thing), id: idOf(thing) }));
  writer.list(rows, { purged: 'purged', id: 'id' }, '');
}

function find(deleted: readonly DeletedThing[], what: string): DeletedThing {
  const byId = deleted.filter((thing) => idOf(thing) === what);
  const [found, ...others] = byId.length > 0 ? byId : deleted.filter(({ name }) => name === what);
  if (found === undefined) throw new CliFailure(`nothing that was deleted is called ${what}: see \`catnap deleted\``);
  if (others.length === 0) return found;
  const ids = [found, ...others].map(idOf).join(', ');
  throw new CliFailure(`several deleted things are called ${what}: choose one of the ids ${ids}`);
}

const idOf = ({ project_id: project, branch_id: branch }: DeletedThing) => branch ?? project;

function pathOf({ project_id: project, branch_id: branch }: DeletedThing): string {
  const path = `/projects/${encodeURIComponent(project)}`;
  return branch === undefined ? path : `${path}/branches/${encodeURIComponent(branch)}`;
}

/** Names may hold anything; quotes and escapes keep a terminal safe. */
function describe({ kind, name, project_name: project }: DeletedThing): string {
  const quoted = JSON.stringify(name);
  return kind === 'project' ? `project ${quoted}` : `branch ${quoted} of ${JSON.stringify(project)}`;
}

const sizeOf = ({ logical_size: bytes }: DeletedThing) => (bytes === undefined ? null : inUnits(bytes));
