/**
 * Loaded into each of Catnap's processes by an episode: while the file that CHAOS_CALLS names lists them, calls of these
 * kinds fail as they do on a broken disk or a machine that is out of processes. `sync` is every way to make files
 * durable, `clone` every way to share or copy one, `spawn` the start of any program.
 */
import childProcess from 'node:child_process';
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { basename } from 'node:path';

const path = process.env.CHAOS_CALLS;
const readFile = fs.readFileSync;

/** Asked at each call: such calls are rare, and the file is in memory. */
function isFailing(kind) {
  try {
    return readFile(path, 'utf8').split(' ').includes(kind);
  } catch {
    return false;
  }
}

const failure = (syscall) =>
  Object.assign(new Error(`EIO: i/o error, ${syscall}`), { code: 'EIO', errno: -5, syscall });

function breakSync(target, names, kind) {
  for (const name of names) {
    const real = target[name];
    target[name] = function broken(...words) {
      if (isFailing(kind)) throw failure(name);
      return real.apply(this, words);
    };
  }
}

function breakCallback(target, names, kind) {
  for (const name of names) {
    const real = target[name];
    target[name] = function broken(...words) {
      if (isFailing(kind)) return process.nextTick(words.at(-1), failure(name));
      return real.apply(this, words);
    };
  }
}

function breakPromise(target, names, kind) {
  for (const name of names) {
    const real = target[name];
    target[name] = async function broken(...words) {
      if (isFailing(kind)) throw failure(name);
      return real.apply(this, words);
    };
  }
}

/** Node asks the system for a program here, whichever function of its own was called. */
function breakPrograms({ prototype }) {
  const real = prototype.spawn;
  prototype.spawn = function broken(options) {
    if (isFailing('spawn')) return real.call(this, { ...options, file: '/nonexistent/program' });
    if (basename(options.file) === 'sync' && isFailing('sync')) return real.call(this, { ...options, file: 'false' });
    return real.call(this, options);
  };
}

if (path !== undefined) {
  const handle = await fs.promises.open('/dev/null');
  breakPromise(Object.getPrototypeOf(handle), ['sync', 'datasync'], 'sync');
  await handle.close();
  breakSync(fs, ['fsyncSync', 'fdatasyncSync'], 'sync');
  breakCallback(fs, ['fsync', 'fdatasync'], 'sync');
  breakSync(fs, ['copyFileSync'], 'clone');
  breakCallback(fs, ['copyFile'], 'clone');
  breakPromise(fs.promises, ['copyFile'], 'clone');
  breakPrograms(childProcess.ChildProcess);
  syncBuiltinESMExports();
}
