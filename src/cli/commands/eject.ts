/**
 * `catnap eject`: a branch as a plain data directory, which runs without Catnap. The data is that of a branch made for
 * the moment, so that the branch itself goes on serving.
 */
import type { Command } from 'commander';
import { CliFailure } from '../kit/failure.ts';
import type { CreateProjectBranchReply, GetProjectReply, UpdateProjectEndpointReply } from '../kit/generated.ts';
import { waitFor } from '../kit/operations.ts';
import { inProject } from '../kit/options.ts';
import type { Ejected } from '../kit/parts.ts';
import type { RunCommand, Session } from '../kit/session.ts';
import { type BranchTarget, findBranch, type InProject } from '../kit/targets.ts';

interface Options extends InProject {
  readonly user?: string;
}

export function addEject(program: Command, run: RunCommand): void {
  inProject(program.command('eject').description('copy a branch into a data directory that runs without Catnap'))
    .argument('<branch>', 'id or name of the branch')
    .argument('<folder>', 'the data directory that is made')
    .option('--user <account>', 'as root: whose the data becomes, since Postgres does not run as root')
    .action((branch: string, folder: string, options: Options) =>
      run((session) => eject(session, branch, folder, options)),
    );
}

async function eject(session: Session, given: string, folder: string, options: Options): Promise<undefined> {
  const { parts, writer } = session;
  const target = await findBranch(session, { ...options, branch: given });
  const place = { projectId: target.project.id, branchId: target.branch.id, folder, account: options.user };
  await sentence(parts.eject.check(place));
  const { project } = await session.client.get<GetProjectReply>(target.project.path);
  const copy = await makeCopy(session, target);
  try {
    await suspend(session, target, copy.endpointId);
    const pgVersion = project.pg_version;
    const ejected = await sentence(parts.eject.copy({ ...place, ...copy, pgVersion }));
    writer.record(ejected, titles);
    for (const line of adviceOn(ejected, pgVersion)) writer.remark(line);
  } finally {
    await session.client.delete(`${target.project.path}/branches/${copy.branchId}?hard_delete=true`);
  }
  return undefined;
}

/** Failures of the machine are for people to read. */
async function sentence<T>(work: Promise<T>): Promise<T> {
  return work.catch((error: unknown) => {
    throw new CliFailure(error instanceof Error ? error.message : String(error));
  });
}

async function makeCopy(session: Session, { project, branch }: BranchTarget) {
  const made = await session.client.post<CreateProjectBranchReply>(`${project.path}/branches`, {
    branch: { parent_id: branch.id, name: `eject of ${branch.name} ${Date.now()}` },
    endpoints: [{ type: 'read_write' }],
  });
  await waitFor(session, made.operations);
  return { branchId: made.branch.id, endpointId: made.endpoints[0]?.id ?? '' };
}

/** The data is then shut down in order, and needs no recovery. */
async function suspend(session: Session, { project }: BranchTarget, endpointId: string): Promise<void> {
  const path = `${project.path}/endpoints/${endpointId}/suspend`;
  const { operations } = await session.client.post<UpdateProjectEndpointReply>(path, {});
  await waitFor(session, operations);
}

const titles = {
  folder: 'folder',
  account: 'owner',
  program: 'program',
  superuser: 'superuser',
  password: 'password',
} as const;

function adviceOn({ folder, program, account, superuser }: Ejected, pgVersion: number): readonly string[] {
  const as = account === null ? '' : `as ${account} `;
  return [
    `Run it ${as}with ${program} -D ${folder}`,
    `or with any other Postgres ${pgVersion} that has the extensions it uses. It listens on localhost:5432.`,
    `All roles have the passwords that they had. The password of ${superuser}, a superuser, is shown this once.`,
  ];
}
