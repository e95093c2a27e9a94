/** `catnap status`: whether Catnap is up, and what it holds. Exit code 1 when it is not up. */
import type { Command } from 'commander';
import { type ApiClient, ApiRefusal, ApiUnreachable } from '../kit/client.ts';
import type { Installation } from '../kit/generated.ts';
import type { RunCommand, Session } from '../kit/session.ts';

export function addStatus(program: Command, run: RunCommand): void {
  program
    .command('status')
    .description('is Catnap up, and how many projects and computes are there')
    .action(() => run(showStatus));
}

interface Found {
  readonly state: 'up' | 'not ready' | 'down';
  /** Why Catnap is not up, and what to do. */
  readonly problem: string | undefined;
  readonly status: Installation | undefined;
}

async function showStatus({ client, writer, parts }: Session): Promise<number> {
  const { state, problem, status } = await findState(client);
  const counts = status?.counts;
  writer.record(
    {
      state,
      problem,
      version: status?.version,
      url: client.url,
      api_url: status?.api_url,
      database_port: status?.database_port,
      home: parts.home,
      sizes_enforced: status?.limits_enforced,
      projects: counts?.projects,
      computes_awake: counts?.endpoints.active,
      computes_napping: counts?.endpoints.idle,
      computes_new: counts?.endpoints.init,
    },
    {
      state: 'state',
      version: 'version',
      api_url: 'API',
      database_port: 'database port',
      home: 'data home',
      sizes_enforced: 'sizes enforced',
      projects: 'projects',
      computes_awake: 'computes awake',
      computes_napping: 'computes napping',
      computes_new: 'computes not started yet',
    },
  );
  if (status !== undefined && counts === undefined) writer.remark('Counts are shown to those who have an API key.');
  if (problem !== undefined) parts.stderr.write(`catnap: ${problem}\n`);
  return state === 'up' ? 0 : 1;
}

async function findState(client: ApiClient): Promise<Found> {
  try {
    const status = await client.getOpen<Installation>('/status.json');
    if (status.name !== 'catnap') {
      return { state: 'down', problem: `something other than Catnap answers at ${client.url}`, status: undefined };
    }
    const problem = await whyNotReady(client);
    return { state: problem === undefined ? 'up' : 'not ready', problem, status: await withCounts(client, status) };
  } catch (error) {
    if (error instanceof ApiUnreachable) return { state: 'down', problem: error.message, status: undefined };
    if (error instanceof ApiRefusal) return { state: 'not ready', problem: error.message, status: undefined };
    throw error;
  }
}

/** Where Catnap listens for other machines too, it tells the counts only to those who have a key. */
async function withCounts(client: ApiClient, status: Installation): Promise<Installation> {
  return status.counts === undefined ? client.getBeside<Installation>('/status.json').catch(() => status) : status;
}

async function whyNotReady(client: ApiClient): Promise<string | undefined> {
  try {
    await client.getOpen('/readyz');
    return undefined;
  } catch (error) {
    if (error instanceof ApiRefusal) return `${error.message}; see the log of Catnap`;
    throw error;
  }
}
