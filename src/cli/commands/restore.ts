/** `catnap restore`: an installation from its backup, onto a machine that has nothing but the backup key. */
import { readFile } from 'node:fs/promises';
import { createInterface } from 'node:readline/promises';
import { type Command, InvalidArgumentError } from 'commander';
import { CliFailure } from '../kit/failure.ts';
import type { CliParts, LostSpan, RestoreReport } from '../kit/parts.ts';
import type { RunCommand, Session } from '../kit/session.ts';

interface RestoreOptions {
  readonly from: string;
  readonly at?: string;
  readonly keyFile?: string;
  readonly jobs: number;
}

export function addRestore(program: Command, run: RunCommand): void {
  program
    .command('restore')
    .description('restore a whole installation from its backup into an empty data home')
    .requiredOption('--from <url>', 'the store: file:///folder or s3://bucket/prefix')
    .option('--at <moment>', 'a time such as 2026-01-31T12:00:00Z (default: the newest)')
    .option('--key-file <file>', 'the file with the backup key (default: CATNAP_BACKUP_KEY, else it is asked for)')
    .option('--jobs <count>', 'branches that are restored at the same time, 1 to 16', parseJobs, 3)
    .action((options: RestoreOptions) => run((session) => restore(session, options)));
}

async function restore({ parts, writer, format }: Session, options: RestoreOptions): Promise<number> {
  const keyLine = await findKey(parts, options.keyFile);
  const request = { from: options.from, at: options.at, keyLine, atOnce: options.jobs };
  // Progress is for people; what a program reads is the report alone.
  const say = (line: string) => void parts.stderr.write(`${line}\n`);
  const report = await parts.restore.installation(request, say).catch((error: unknown) => {
    throw new CliFailure(error instanceof Error ? error.message : String(error));
  });
  const facts = summary(report);
  writer.record({ ...report, ...facts }, titles);
  if (format !== 'json') for (const line of remarks(report)) writer.remark(line);
  return facts.isComplete ? 0 : 1;
}

/** Never an argument: every user of the machine can see those. */
async function findKey(parts: CliParts, file: string | undefined): Promise<string> {
  if (file !== undefined) {
    return readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
      throw new CliFailure(`--key-file ${file} cannot be read (${error.code})`);
    });
  }
  if (parts.restore.keyLine !== undefined) return parts.restore.keyLine;
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

function remarks({ system, restored, missing, unknown }: RestoreReport): string[] {
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
  return lines.length === 0 ? ['', 'Start Catnap with `catnap up`.'] : ['', ...lines, '', 'Then: `catnap up`.'];
}

function parseJobs(text: string): number {
  const count = Number(text);
  if (!/^\d+$/.test(text) || count < 1 || count > 16) throw new InvalidArgumentError('a whole number from 1 to 16.');
  return count;
}
