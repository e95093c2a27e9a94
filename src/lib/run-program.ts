/** Runs one short program to its end, under another uid if one is given, and turns a bad exit into a readable error. */
import { spawn } from 'node:child_process';
import { basename } from 'node:path';

/** Nothing of Catnap's own environment reaches a program; `C` keeps messages in one language. */
export const programEnvironment = { LC_ALL: 'C', TZ: 'UTC', PATH: '/usr/local/bin:/usr/bin:/bin' };

export interface ProgramOptions {
  readonly uid?: number | null;
  readonly gid?: number | null;
  readonly input?: string;
  readonly cwd?: string;
  readonly environment?: Readonly<Record<string, string>>;
}

export function runProgram(file: string, args: readonly string[], options: ProgramOptions = {}): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, {
      cwd: options.cwd ?? '/',
      env: { ...programEnvironment, ...options.environment },
      stdio: 'pipe',
      ...(options.uid != null && { uid: options.uid }),
      ...(options.gid != null && { gid: options.gid }),
    });
    const output: string[] = [];
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => output.push(chunk));
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => output.push(chunk));
    child.on('error', reject);
    child.on('close', (code, signal) => {
      const text = output.join('');
      if (code === 0) return resolve(text);
      const tail = text.trim().split('\n').slice(-5).join(' | ');
      reject(new Error(`${basename(file)} ended with ${signal ?? `exit code ${code}`}: ${tail}`));
    });
    // A program that fails early closes its input; its exit code says why, not the broken pipe.
    child.stdin.on('error', () => undefined);
    child.stdin.end(options.input ?? '');
  });
}
