/** `catnap backup`: what is off the machine, how far it is behind, and the key that opens it. */
import { type Command, InvalidArgumentError } from 'commander';
import { CliFailure } from '../kit/failure.ts';
import type { GetBackupReply } from '../kit/generated.ts';
import type { RunCommand, Session } from '../kit/session.ts';
import { inUnits } from '../kit/units.ts';

export function addBackup(program: Command, run: RunCommand): void {
  const backup = program.command('backup').description('copies off the machine (CATNAP_BACKUP_URL)');
  backup
    .command('status')
    .description('is everything uploaded, and what is wrong if not; exit code 1 if something is')
    .action(() => run(showStatus));
  backup
    .command('list')
    .description('what can be restored: each branch with its first and its last moment, and each snapshot')
    .action(() => run(list));
  backup
    .command('key')
    .description('print the backup key, to keep it somewhere else')
    .action(() => run(showKey));
  backup
    .command('verify')
    .description('restore from the store into scratch servers and check what is there; exit code 1 if not in order')
    .option('--sample <count>', 'as many histories, taken at random', parseCount, 1)
    .option('--all', 'every history')
    .action((options: VerifyOptions) => run((session) => verify(session, options)));
}

interface VerifyOptions {
  readonly sample: number;
  readonly all?: boolean;
}

async function verify({ parts, writer, format }: Session, { sample, all = false }: VerifyOptions): Promise<number> {
  const say = (line: string) => void parts.stderr.write(`${line}\n`);
  const found = await parts.backup.verify(all ? null : sample, say).catch((error: unknown) => {
    throw new CliFailure(error instanceof Error ? error.message : String(error));
  });
  const rows = found.verified.map((one) => ({
    ...one,
    took: `${one.seconds.toFixed(1)} s`,
    method: one.check?.method ?? '',
    rows: one.check?.rows ?? '',
    verdict: one.problems.length === 0 ? 'in order' : one.problems.join('; '),
  }));
  const titles = { projectId: 'project', branchId: 'branch', until: 'until', method: 'checked by', rows: 'rows' };
  if (format === 'json') writer.record({ ...found }, {});
  else {
    writer.list(rows, { ...titles, took: 'took', verdict: 'verdict' }, 'The store has nothing to verify yet.');
    writer.remark(`\n${found.verified.length} of ${found.available} histories were restored and checked.`);
  }
  return found.isOk ? 0 : 1;
}

function parseCount(text: string): number {
  const count = Number(text);
  if (!/^\d+$/.test(text) || count < 1 || count > 100_000) throw new InvalidArgumentError('a whole number from 1 on.');
  return count;
}

async function showStatus({ client, writer, format }: Session): Promise<number> {
  const status = await client.get<GetBackupReply>('/backup');
  const here = status.histories.filter((one) => one.gone_since === null);
  const late = here.map((one) => one.behind_seconds ?? 0);
  writer.record(
    {
      ...status,
      branches: here.length,
      behind: `${Math.max(0, ...late)} s`,
      waiting: inUnits(status.waiting_bytes),
      stored: inUnits(status.stored_bytes),
    },
    {
      state: 'state',
      url: 'store',
      succeeded_at: 'last success',
      branches: 'histories',
      behind: 'behind at most',
      waiting: 'not uploaded yet',
      stored: 'in the store',
      verified_at: 'last verified',
    },
  );
  if (format !== 'json' && status.state === 'off')
    writer.remark('Set CATNAP_BACKUP_URL to upload; see docs/backup.md.');
  if (format !== 'json') for (const alert of status.alerts) writer.remark(`! ${alert}`);
  return status.alerts.length === 0 ? 0 : 1;
}

async function list({ client, writer, format }: Session): Promise<undefined> {
  const { histories } = await client.get<GetBackupReply>('/backup');
  if (format === 'json') {
    writer.list(histories, {}, '');
    return;
  }
  const rows = histories.map((one) => ({
    ...one,
    project: one.project_name ?? one.project_id,
    branch: one.branch_name ?? one.branch_id,
    snapshot: one.snapshot_name ?? one.snapshot_id ?? '',
    behind: one.behind_seconds === null ? '' : `${one.behind_seconds} s`,
    size: inUnits(one.stored_bytes),
    note: one.gone_since === null ? (one.problem ?? '') : `only in the store since ${one.gone_since}`,
  }));
  writer.list(
    rows,
    {
      project: 'project',
      branch: 'branch',
      snapshot: 'snapshot',
      history_id: 'history',
      stored_from: 'from',
      stored_until: 'until',
      behind: 'behind',
      base_count: 'bases',
      size: 'size',
      note: 'note',
    },
    'Nothing is uploaded yet.',
  );
}

async function showKey({ parts, writer, format }: Session): Promise<undefined> {
  const key = await parts.backup.key().catch((error: Error) => {
    throw new CliFailure(`the key cannot be read: ${error.message}; run this as the user who starts Catnap`);
  });
  if (key === undefined) throw new CliFailure('there is no backup key yet: start Catnap with CATNAP_BACKUP_URL set');
  if (format === 'json') {
    writer.record({ key }, {});
    return;
  }
  parts.stdout.write(`${key}\n`);
  parts.stderr.write(
    [
      '',
      'Keep this line somewhere else than on this machine and than in the store: a password manager, or paper.',
      'It opens everything in the store, every password and key of this installation included.',
      'Without it, nobody can read the store, not even you. It never changes.',
      '',
    ].join('\n'),
  );
}
