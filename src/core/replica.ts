/**
 * Rules of read replicas: when a branch may have one, and the settings that Postgres requires to be at least the
 * primary's, because a standby could not replay what a larger primary does.
 */
import type { BranchRow } from '../db/branches.ts';
import { type EndpointRow, selectEndpoints, selectReadWriteEndpoint } from '../db/endpoints.ts';
import type { ProjectRow } from '../db/projects.ts';
import { CatnapError, withDetails } from '../lib/errors.ts';
import type { SizeRange } from '../lib/model.ts';
import { planOfProject } from './access.ts';
import type { CommandScope } from './context.ts';
import { wantedSettings } from './endpoint-settings.ts';

type Settings = Readonly<Record<string, string>>;

/** Each with its default in Postgres. */
const recoveryParameters: Settings = {
  max_connections: '100',
  max_worker_processes: '8',
  max_wal_senders: '10',
  max_prepared_transactions: '0',
  max_locks_per_transaction: '64',
};

export async function requirePrimary(scope: CommandScope, branch: BranchRow): Promise<void> {
  if ((await selectReadWriteEndpoint(scope.tx, branch.id)) === undefined) {
    throw new CatnapError(
      'unprocessable',
      'a read_only endpoint follows the read_write endpoint of its branch: this branch has none, create it first',
    );
  }
}

export async function requireReplicaAllowed(
  scope: CommandScope,
  project: ProjectRow,
  branch: BranchRow,
): Promise<void> {
  await requirePrimary(scope, branch);
  const plan = await planOfProject(scope, project);
  const max = plan.replicasPerProjectMax;
  const endpoints = await selectEndpoints(scope.tx, project.id);
  if (max !== null && endpoints.filter(({ type }) => type === 'read_only').length >= max) {
    throw new CatnapError(
      'unprocessable',
      withDetails(`read replicas limit exceeded on the plan "${plan.name}"`, { limit: max }),
    );
  }
}

/** The larger of what it runs with and what it will run with: a change of size may be under way. */
export function settingsOfPrimary(project: ProjectRow, primary: EndpointRow, size: SizeRange): Record<string, string> {
  return withPrimarySettings(wantedSettings(project, primary, size), primary.server?.settings ?? {});
}

/** A replica's own settings, with these five raised to those of its primary. */
export function withPrimarySettings(own: Settings, primary: Settings): Record<string, string> {
  const raised: Record<string, string> = { ...own };
  for (const name of Object.keys(recoveryParameters)) {
    if (needs(own, primary, name)) raised[name] = primary[name] ?? '';
  }
  return raised;
}

/** A server that runs with these settings stops replaying, because its primary has grown beyond them. */
export function isOutgrown(running: Settings, primary: Settings): boolean {
  return Object.keys(recoveryParameters).some((name) => needs(running, primary, name));
}

function needs(own: Settings, primary: Settings, name: string): boolean {
  return Number(primary[name] ?? 0) > Number(own[name] ?? recoveryParameters[name]);
}
