/** `catnap storage`: how branches share space on this machine, and a filesystem for machines on which they do not. */
import { type Command, InvalidArgumentError } from 'commander';
import { confirm } from '../kit/confirm.ts';
import { CliFailure } from '../kit/failure.ts';
import type { StorageStatus } from '../kit/parts.ts';
import type { RunCommand, Session } from '../kit/session.ts';
import { inUnits } from '../kit/units.ts';

interface CreateOptions {
  readonly size: number;
  readonly yes?: boolean;
}

/** Beyond this a clone of the branch takes noticeably longer: 0.5 s and more at 37,000. */
const manyExtents = 10_000;

export function addStorage(program: Command, run: RunCommand): void {
  const storage = program.command('storage').description('how branches share space, and a filesystem that can');
  storage
    .command('status')
    .description('how branches are made here, what they take and what they share')
    .action(() => run(showStatus));
  storage
    .command('create')
    .description('make an XFS image in the data home and move the branches into it; as root, while Catnap is stopped')
    .requiredOption('--size <size>', 'how large it may grow, e.g. 50G (M, G and T are powers of 1024)', parseSize)
    .option('--yes', 'do not ask')
    .action((options: CreateOptions) => run((session) => create(session, options)));
}

async function create({ parts, writer }: Session, { size, yes = false }: CreateOptions): Promise<undefined> {
  const plan = await parts.storage.plan(size).catch(fail);
  writer.remark(
    [
      `This makes ${plan.image}, an XFS filesystem of ${inUnits(plan.bytes)} in a file that grows as it is used,`,
      `and mounts it on ${plan.mountPoint}; from then on Catnap mounts it at each start.`,
      plan.movedBytes === 0
        ? 'Nothing is moved: there is no data yet.'
        : `Data of ${plan.projects} projects (${inUnits(plan.movedBytes)}) is copied into it, then removed from where it is.`,
      'Branches that exist stay full copies; new ones share the blocks of their parent.',
    ].join('\n'),
  );
  if (!yes && !(await confirm(parts, 'Go on?'))) throw new CliFailure('nothing was changed');
  await parts.storage.create(size, (line) => writer.remark(line)).catch(fail);
  writer.remark('Start Catnap again to use it. docs/storage.md describes how to grow it and how to go back.');
}

function fail(error: unknown): never {
  throw new CliFailure(error instanceof Error ? error.message : String(error));
}

async function showStatus({ parts, writer, format }: Session): Promise<undefined> {
  const status = await parts.storage.status().catch(fail);
  writer.record({ ...status, ...words(status) }, columns(status));
  const { branches } = status;
  if (format === 'json') return;
  if (branches === null) {
    writer.remark('What branches share is not known: filefrag is not installed (Debian: apt install e2fsprogs).');
    return;
  }
  const rows = branches.map((use) => ({ ...use, bytes: inUnits(use.bytes), shared: inUnits(use.shared) }));
  const titles = { project: 'project', branch: 'branch', bytes: 'data', shared: 'shared', extents: 'extents' };
  writer.remark('');
  writer.list(rows, titles, 'There are no branches yet.');
  const torn = branches.filter((use) => use.extents > manyExtents).map((use) => use.branch);
  if (torn.length > 0) writer.remark(`\nSlow to branch, because a file of them is in many pieces: ${torn.join(', ')}`);
}

const methods = {
  reflink: 'reflink: a branch shares the blocks of its parent',
  copy: 'copy: a branch is a full copy; see `catnap storage create`',
};

function words(status: StorageStatus) {
  const { image } = status;
  return {
    how: status.method === null ? `not known: ${status.path} is not writable` : methods[status.method],
    where: status.isAway ? 'in an image that is not mounted; Catnap mounts it when it starts' : status.path,
    file: image && `${image.file}, up to ${inUnits(image.bytes)}, ${inUnits(image.bytesOnDisk)} on the disk`,
    used: inUnits(status.bytesUsed),
    free: inUnits(status.bytesFree),
    data: inUnits(status.branchBytes),
    taken: inUnits(status.branchBytesOnDisk),
    saved: inUnits(status.branchBytes - status.branchBytesOnDisk),
    history: `${inUnits(status.historyBytesOnDisk)} beyond what branches take`,
    purge: status.purgeBytes && `at least ${inUnits(status.purgeBytes)}; catnap deleted lists it`,
  };
}

function columns({ image, branches, purgeBytes }: StorageStatus) {
  return {
    how: 'method',
    where: 'data in',
    ...(image && { file: 'image' }),
    used: 'filesystem used',
    free: 'filesystem free',
    ...(branches && {
      data: 'data of all branches',
      taken: 'what they take',
      saved: 'saved by sharing',
      history: 'history',
    }),
    ...(purgeBytes !== null && purgeBytes > 0 && { purge: 'freed by catnap purge' }),
  };
}

function parseSize(text: string): number {
  const [, digits = '', unit = ''] = /^(\d{1,6})([MGT])(?:i?B)?$/i.exec(text) ?? [];
  const power = ['M', 'G', 'T'].indexOf(unit.toUpperCase()) + 2;
  if (digits === '') throw new InvalidArgumentError('a size is a whole number and M, G or T, as in 50G.');
  return Number(digits) * 1024 ** power;
}
