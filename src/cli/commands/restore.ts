/**
 * `catnap restore`: an installation from its backup, onto a machine that has nothing but the backup key; or one project
 * into the installation that runs.
 */
import { readFile } from 'node:fs/promises';
import { createInterface } from 'node:readline/promises';
import { type Command, InvalidArgumentError } from 'commander';
import { CliFailure } from '../kit/failure.ts';
import type { CliParts, LostSpan, ProjectRestoreReport, RestoreReport } from '../kit/parts.ts';
import type { RunCommand, Session } from '../kit/session.ts';

interface RestoreOptions {
  readonly from: string;
  readonly at?: string;
  readonly keyFile?: string;
  readonly jobs: number;
  readonly project?: string;
  readonly asNew?: boolean;
  readonly org?: string;
}

export function addRestore(program: Command, run: RunCommand): void {
  program
    .command('restore')
    .description(
      'restore a whole installation from its backup into an empty data home, or one project into a running one',
    )
    .requiredOption('--from <url>', 'the store: file:///folder or s3://bucket/prefix')
    .option('--at <moment>', 'a time such as 2026-01-31T12:00:00Z (default: the newest)')
    .option('--key-file <file>', 'the file with the backup key (default: CATNAP_BACKUP_KEY, else it is asked for)')
    .option('--project <id>', 'this project alone, into the Catnap that runs on the data home')
    .option('--as-new', 'with --project: under new ids, beside the project that has the old ones')
    .option('--org <id>', 'with --project: the organization that gets it (default: the one it was in)')
    .option('--jobs <count>', 'branches that are restored at the same time, 1 to 16', parseJobs, 3)
    .action((options: RestoreOptions) => run((session) => restore(session, options)));
}

async function restore({ parts, writer, format }: Session, options: RestoreOptions): Promise<number> {
  const { project: projectId, asNew = false, org: organizationId } = options;
  if (projectId === undefined && (asNew || organizationId !== undefined)) {
    throw new CliFailure(`${asNew ? '--as-new' : '--org'} is for one project: name it with --project`);
  }
  // Whoever runs Catnap here has the key of its own backup. It does not open another one.
  const own = projectId === undefined ? undefined : await parts.backup.key();
  const keyLine = await findKey(parts, options.keyFile, own);
  const request = { from: options.from, at: options.at, keyLine, atOnce: options.jobs };
  // Progress is for people; what a program reads is the report alone.
  const say = (line: string) => void parts.stderr.write(`${line}\n`);
  const restoring =
    projectId === undefined
      ? parts.restore.installation(request, say)
      : parts.restore.project({ ...request, project: { projectId, asNew, organizationId } }, say);
  const report = await restoring.catch((error: unknown) => {
    throw new CliFailure(error instanceof Error ? error.message : String(error));
  });
  const facts = isOfProject(report) ? projectSummary(report) : summary(report);
  writer.record({ ...report, ...facts }, isOfProject(report) ? projectTitles : titles);
  if (format !== 'json') for (const line of remarks(report)) writer.remark(line);
  return facts.isComplete ? 0 : 1;
}

/** Never an argument: every user of the machine can see those. */
async function findKey(parts: CliParts, file: string | undefined, own: string | undefined): Promise<string> {
  if (file !== undefined) {
    return readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
      throw new CliFailure(`--key-file ${file} cannot be read (${error.code})`);
    });
  }
  if (parts.restore.keyLine !== undefined) return parts.restore.keyLine;
  if (own !== undefined) return own;
  if (!parts.stdin.isTTY) throw new CliFailure('the backup key is needed: --key-file, or CATNAP_BACKUP_KEY');
  const lines = createInterface({ input: parts.stdin, output: parts.stderr });
  try {
    return await lines.question('Backup key (one line of 43 characters): ');
  } finally {
    lines.close();
  }
}

const titles = {
  took: 'took',
  projects: 'projects',
  branches: 'branches restored',
  until: 'everything until',
  systemUntil: 'system database until',
  notRestored: 'not restored',
};

function summary(report: RestoreReport) {
  const { restored, missing, system } = report;
  const ends = restored.map(({ until }) => until).filter((until) => until !== null);
  const isComplete = missing.length === 0 && [system, ...restored].every(({ lost }) => lost === null);
  return {
    took: `${((Date.parse(report.finishedAt) - Date.parse(report.startedAt)) / 1_000).toFixed(1)} s`,
    projects: new Set(restored.map(({ projectId }) => projectId)).size,
    branches: restored.length,
    until: ends.sort()[0] ?? null,
    systemUntil: system.until,
    notRestored: missing.length,
    isComplete,
  };
}

const isOfProject = (report: RestoreReport | ProjectRestoreReport): report is ProjectRestoreReport =>
  'project' in report;

const projectTitles = {
  took: 'took',
  projectId: 'project',
  projectName: 'name',
  branches: 'branches and snapshots restored',
  until: 'everything until',
  notRestored: 'not restored',
};

function projectSummary(report: ProjectRestoreReport) {
  const { took, branches, until, notRestored, isComplete } = summary(report);
  const { id: projectId, name: projectName } = report.project;
  return { took, projectId, projectName, branches, until, notRestored, isComplete };
}

function remarks(report: RestoreReport | ProjectRestoreReport): string[] {
  const { system, restored, missing, unknown } = report;
  const lost = (title: string, span: LostSpan | null) =>
    span === null
      ? []
      : [
          `${title}: ${span.reason}: moments after ${span.from.at} (${span.from.lsn}) ` +
            `and before ${span.until.at} (${span.until.lsn}) cannot be given; its data ends there`,
        ];
  const lines = [
    ...lost('system database', system.lost),
    ...restored.flatMap((one) => lost(`${one.projectId} ${one.name} (${one.id})`, one.lost)),
    ...[system, ...restored].flatMap(({ problems }) => problems.map((text) => `not used: ${text}`)),
    ...missing.map(({ projectId, name, id, reason }) => `${projectId} ${name} (${id}): no data: ${reason}`),
    ...unknown.map(
      ({ projectId, branchId, historyId }) =>
        `the store has data of ${branchId} in ${projectId} (history ${historyId}), which the system database of that ` +
        'moment does not know: it was made or deleted around then. It stays in the store.',
    ),
  ];
  if (isOfProject(report)) {
    lines.push(...report.notes);
    return lines.length === 0 ? [] : ['', ...lines];
  }
  return lines.length === 0 ? ['', 'Start Catnap with `catnap up`.'] : ['', ...lines, '', 'Then: `catnap up`.'];
}

function parseJobs(text: string): number {
  const count = Number(text);
  if (!/^\d+$/.test(text) || count < 1 || count > 16) throw new InvalidArgumentError('a whole number from 1 to 16.');
  return count;
}
