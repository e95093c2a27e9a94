/** What the system reports about a process, so that a recycled pid is never mistaken for one of our servers. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { readdir, readlink, realpath } from 'node:fs/promises';
import { promisify } from 'node:util';

/**
 * The arguments of a living process, or null when there is none (a zombie has none left either). Without /proc they
 * come from `ps` as one string, which is enough for a search.
 */
export async function readCommandLine(pid: number): Promise<readonly string[] | null> {
  if (process.platform !== 'linux') {
    const found = await promisify(execFile)('ps', ['-ww', '-o', 'command=', '-p', String(pid)]).catch(() => null);
    return found && found.stdout.trim() !== '' ? [found.stdout.trim()] : null;
  }
  const text = readKernelText(`/proc/${pid}/cmdline`);
  return text === '' ? null : text.split('\0').slice(0, -1);
}

/** The kernel generates the text in memory. Empty where there is no such file. */
function readKernelText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

/** The real uid of a process, or null where the system does not report it. */
export async function readProcessUid(pid: number): Promise<number | null> {
  if (process.platform !== 'linux') return null;
  const status = readKernelText(`/proc/${pid}/status`);
  const match = /^Uid:\s+(\d+)/m.exec(status);
  return match ? Number(match[1]) : null;
}

/** The value of `-c name=value`, in both forms of a command line. */
export function commandLineSetting(commandLine: readonly string[], name: string): string | null {
  const prefix = `${name}=`;
  for (const word of commandLine.flatMap((argument) => argument.split(' '))) {
    if (word.startsWith(prefix)) return word.slice(prefix.length);
  }
  return null;
}

/**
 * Whether any process has this working directory. Every process of a server does, and those of a killed server go on
 * for a moment without their postmaster. False where the system does not report it.
 */
export async function isWorkedIn(directory: string): Promise<boolean> {
  return (await workingDirectories()).includes(directory);
}

/** Whether any process has its working directory here or below. */
export async function isWorkedUnder(directory: string): Promise<boolean> {
  const real = await realpath(directory).catch(() => directory);
  return (await workingDirectories()).some((folder) => folder === real || folder.startsWith(`${real}/`));
}

async function workingDirectories(): Promise<string[]> {
  if (process.platform !== 'linux') return [];
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  return Promise.all(pids.map((pid) => readlink(`/proc/${pid}/cwd`).catch(() => '')));
}
