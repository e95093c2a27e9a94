/** `catnap import`: a database of any Postgres server into an empty database of a branch. */
import { once } from 'node:events';
import { text as readAll } from 'node:stream/consumers';
import { type Command, Option } from 'commander';
import type { ImportReport } from '../kit/copy-parts.ts';
import { describeCopy } from '../kit/copy-progress.ts';
import { CliFailure, sentence } from '../kit/failure.ts';
import { asRole, onBranch } from '../kit/options.ts';
import { progressLine } from '../kit/progress-line.ts';
import type { RunCommand, Session } from '../kit/session.ts';
import { type AsRole, connectionOf, findCompute } from '../kit/targets.ts';

const methods = ['auto', 'replication', 'copy'] as const;

interface Options extends AsRole {
  readonly largeObjects: boolean;
  readonly method: (typeof methods)[number];
  readonly follow?: boolean;
}

export function addImport(program: Command, run: RunCommand): void {
  const command = program.command('import').description('copy a database of any Postgres server into a branch');
  asRole(onBranch(command))
    .argument('<url>', 'postgresql://user:password@host:port/database, or - to read it from the standard input')
    .addOption(
      new Option('--method <method>', 'replication also brings what is written meanwhile; auto: where it is permitted')
        .choices(methods)
        .default('auto'),
    )
    .option('--follow', 'go on bringing changes until Ctrl-C; for a switch without a long pause')
    .option('--no-large-objects', 'copy a database that has large objects, and leave those behind')
    .action((url: string, options: Options) => run((session) => importInto(session, url, options)));
}

async function importInto(session: Session, given: string, options: Options): Promise<undefined> {
  const { parts, writer, format } = session;
  const source = given === '-' ? (await readAll(parts.stdin)).trim() : given;
  // A copy is one long session, and a pooler is for short ones.
  const direct = { ...options, pooled: false };
  const target = await connectionOf(session, await findCompute(session, undefined, direct), direct);
  if (options.follow && options.method === 'copy')
    throw new CliFailure('--follow needs --method replication or auto', 2);
  const line = progressLine(parts.stderr);
  const request = {
    source,
    target,
    withoutLargeObjects: !options.largeObjects,
    method: options.follow ? ('replication' as const) : options.method,
    whenCaughtUp: async () => {
      if (!options.follow) return;
      line.clear();
      parts.stderr.write('The branch has everything. Stop writing to the source, then press Ctrl-C to finish.\n');
      await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]);
    },
  };
  const importing = parts.importDatabase(request, (progress) => line.show(describeCopy(progress)));
  const report = await sentence(importing).finally(() => line.clear());
  writer.record({ ...report, notes: format === 'json' ? report.notes : undefined }, titles);
  for (const note of report.notes) writer.remark(`Note: ${note}.`);
  if (report.isResumed && report.method === 'copy') writer.remark(fromSeveralMoments);
  return undefined;
}

const titles = { tables: 'tables', rows: 'rows', bytes: 'bytes', method: 'method' } as const satisfies Partial<
  Record<keyof ImportReport, string>
>;

const fromSeveralMoments =
  'Note: the copy was made in several runs, each from its own moment of the source: what was written there in between ' +
  'is in the tables of the later ones only.';
