/**
 * What runs in a thread that copies files: by sharing their blocks where the filesystem can (FICLONE on XFS and btrfs,
 * a clone on APFS), byte for byte elsewhere. Which of the two is tried, never guessed, and each file is counted as what
 * it became. Every call is synchronous: a trip through the event loop for each cost more than the copy itself. Its text
 * is sent to the thread as it is, so it may use nothing from outside itself but what it is handed.
 */
import type { Stats } from 'node:fs';

export interface FileOptions {
  /** The owner of the copy; null or absent leaves it to the caller's own uid. */
  readonly owner?: number | null | undefined;
  /**
   * The uid that the source belongs to, when it is not to be trusted: each file is opened without following a link
   * and must belong to that uid, so that a tenant who plants a link gets nothing that was not readable before.
   */
  readonly sourceOwner?: number | null | undefined;
  /** Opens the copy for reading to everybody, keeping links. Without it a link in the source is an error. */
  readonly readable?: boolean | undefined;
  /** The source is in use: its files may vanish, shrink and grow meanwhile. Nothing else is forgiven. */
  readonly live?: boolean | undefined;
}

/** Several threads may work on one order: the one that raises `taken` has the files up to there. */
export interface CopyOrder {
  readonly source: string;
  readonly target: string;
  readonly paths: readonly string[];
  readonly options: FileOptions;
  /** Whether blocks can be shared; null before the first file has been tried. */
  readonly shares: boolean | null;
  readonly taken: SharedArrayBuffer;
}

export interface CopyOutcome {
  /** Whether every file is taken; if not, it stopped to give another order a turn. */
  readonly isOver: boolean;
  readonly shares: boolean | null;
  readonly bytesShared: number;
  readonly bytesCopied: number;
  readonly error: { readonly message: string; readonly code: string | undefined } | null;
}

export function runCopies(): void {
  const { parentPort } = process.getBuiltinModule('node:worker_threads');
  const fs = process.getBuiltinModule('node:fs');
  const { constants } = fs;
  /** Neighbours in one directory, so that two threads seldom wait for the same one. */
  const filesAtOnce = 32;
  const turnMs = 50;
  const pourBytes = 262_144;
  /** What filesystems answer that cannot share blocks, or not with that one. */
  const cannotShare = ['ENOTSUP', 'EOPNOTSUPP', 'EXDEV', 'EINVAL', 'ENOTTY', 'ENOSYS'];
  const codeOf = (error: unknown) => (error as NodeJS.ErrnoException).code;

  parentPort?.on('message', (order: CopyOrder) => parentPort.postMessage(copyAll(order)));

  function copyAll({ source, target, paths, options, shares, taken }: CopyOrder): CopyOutcome {
    const counts = { shares, bytesShared: 0, bytesCopied: 0 };
    const next = new Int32Array(taken);
    const giveRoomAt = performance.now() + turnMs;
    try {
      while (performance.now() < giveRoomAt) {
        const from = Atomics.add(next, 0, filesAtOnce);
        if (from >= paths.length) return { ...counts, isOver: true, error: null };
        for (const path of paths.slice(from, from + filesAtOnce)) {
          copyFile(`${source}/${path}`, `${target}/${path}`, options, counts);
        }
      }
      return { ...counts, isOver: false, error: null };
    } catch (error) {
      // Nobody takes any more of them.
      Atomics.store(next, 0, paths.length);
      return { ...counts, isOver: true, error: { message: (error as Error).message, code: codeOf(error) } };
    }
  }

  type Counts = { shares: boolean | null; bytesShared: number; bytesCopied: number };

  function copyFile(from: string, to: string, options: FileOptions, counts: Counts): void {
    const fd = openSource(from, options);
    if (fd === null) return;
    try {
      const facts = fs.fstatSync(fd);
      if (options.live && facts.nlink === 0) return;
      requirePlain(facts, from, options);
      if (share(fd, from, to, options, counts)) counts.bytesShared += facts.size;
      else counts.bytesCopied += pour(fd, from, to, options, facts);
    } finally {
      fs.closeSync(fd);
    }
    if (options.readable) fs.chmodSync(to, fs.lstatSync(to).mode & 0o111 ? 0o755 : 0o644);
    // By path: until the tree is whole its top directory lets nobody but the copier in.
    if (options.owner != null) fs.lchownSync(to, options.owner, options.owner);
  }

  /** Null for a file that has vanished from a directory in use. */
  function openSource(from: string, { live }: FileOptions): number | null {
    try {
      return fs.openSync(from, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    } catch (error) {
      if (live && codeOf(error) === 'ENOENT') return null;
      throw error;
    }
  }

  function requirePlain(facts: Stats, from: string, { sourceOwner, live }: FileOptions): void {
    const isGuarded = sourceOwner != null || live;
    const isForeign = facts.uid !== (sourceOwner ?? facts.uid) || (isGuarded && facts.nlink !== 1);
    if (!facts.isFile() || isForeign) throw new Error(`not a plain file of uid ${sourceOwner ?? 'its owner'}: ${from}`);
  }

  function share(fd: number, from: string, to: string, options: FileOptions, counts: Counts): boolean {
    if (counts.shares === false) return false;
    try {
      const how = constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE_FORCE;
      fs.copyFileSync(nameOf(fd, from, options), to, how);
      counts.shares = true;
      return true;
    } catch (error) {
      if (!cannotShare.includes(codeOf(error) ?? '')) throw error;
      counts.shares ??= false;
      return false;
    }
  }

  /** To the end of the file, wherever that is by then: `copyFile` spins for ever on a file that has become shorter. */
  function pour(fd: number, from: string, to: string, options: FileOptions, facts: Stats): number {
    if (!options.live) {
      fs.copyFileSync(nameOf(fd, from, options), to, constants.COPYFILE_EXCL);
      return facts.size;
    }
    const writer = fs.openSync(to, 'wx', 0o600);
    try {
      const buffer = Buffer.allocUnsafe(pourBytes);
      for (let total = 0; ; ) {
        const bytes = fs.readSync(fd, buffer, 0, pourBytes, null);
        if (bytes === 0) return total;
        for (let written = 0; written < bytes; ) written += fs.writeSync(writer, buffer, written, bytes - written);
        total += bytes;
      }
    } finally {
      fs.closeSync(writer);
    }
  }

  /**
   * Copies the file that was checked, not whatever its name leads to a moment later. Elsewhere than on Linux Catnap has
   * no tenants of their own uids, and the name will do.
   */
  function nameOf(fd: number, from: string, { sourceOwner }: FileOptions): string {
    if (process.platform === 'linux') return `/proc/self/fd/${fd}`;
    if (sourceOwner != null) throw new Error('tenants with uids of their own need Linux');
    return from;
  }
}
