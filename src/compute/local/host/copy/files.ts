/**
 * The code of a thread that copies files: by sharing their blocks where the filesystem can (FICLONE on XFS and btrfs, a
 * clone on APFS), byte for byte elsewhere. Which of the two works is tried, never guessed, and each file counts as what
 * it became. Every call is synchronous: a trip through the event loop for each cost more than the copy itself. The
 * source text is sent to the thread as it is, so the function may use nothing from outside itself but its arguments.
 */
import type { Stats } from 'node:fs';

export interface FileOptions {
  /** The owner of the copy; null or absent leaves it to the caller's own uid. */
  readonly owner?: number | null | undefined;
  /**
   * The uid that owns the source, when that uid is not trusted: each file is opened without following a link and must
   * belong to that uid, so that a tenant that plants a link gets nothing that it could not read before.
   */
  readonly sourceOwner?: number | null | undefined;
  /** Makes the copy readable for all users, keeping links. Without it a link in the source is an error. */
  readonly readable?: boolean | undefined;
  /** A group whose members may read the copy, and change nothing in it. */
  readonly group?: number | null | undefined;
  /** The source is in use: its files may vanish, shrink and grow during the copy. Any other failure is an error. */
  readonly live?: boolean | undefined;
}

/** Several threads may work on one order: the one that raises `taken` copies the files up to there. */
export interface CopyOrder {
  readonly source: string;
  readonly target: string;
  readonly paths: readonly string[];
  /** How many a thread takes at once: neighbours, so that two threads seldom wait for the same directory. */
  readonly filesAtOnce: number;
  readonly options: FileOptions;
  /** Whether blocks can be shared; null before the first file has been tried. */
  readonly shares: boolean | null;
  readonly taken: SharedArrayBuffer;
}

export interface CopyOutcome {
  /** Whether every file is taken; if not, the thread stopped to give another order a turn. */
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
  const turnMs = 50;
  const pourBytes = 262_144;
  /** Error codes of filesystems that cannot share blocks, or not with the other one. */
  const cannotShare = ['ENOTSUP', 'EOPNOTSUPP', 'EXDEV', 'EINVAL', 'ENOTTY', 'ENOSYS'];
  const codeOf = (error: unknown) => (error as NodeJS.ErrnoException).code;

  parentPort?.on('message', (order: CopyOrder) => parentPort.postMessage(copyAll(order)));

  function copyAll({ source, target, paths, filesAtOnce, options, shares, taken }: CopyOrder): CopyOutcome {
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
      // Keeps the other threads from taking more files.
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
    if (options.group != null) {
      fs.chmodSync(to, 0o640);
      fs.lchownSync(to, -1, options.group);
    }
    // By path: until the tree is complete only the copier can enter its top directory.
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

  /** Reads to the end of the file as it is then: `copyFile` spins forever on a file that has become shorter. */
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
   * Copies the file that was checked, not whatever its name leads to a moment later. Outside Linux Catnap gives tenants
   * no uids of their own, so the name is enough.
   */
  function nameOf(fd: number, from: string, { sourceOwner }: FileOptions): string {
    if (process.platform === 'linux') return `/proc/self/fd/${fd}`;
    if (sourceOwner != null) throw new Error('tenants with uids of their own need Linux');
    return from;
  }
}
