/**
 * What the proxies run on. Bun passes bytes on with less work than Node does; it comes with an optional npm package,
 * which a machine may lack, or have and not be able to run.
 */
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { ProxyRuntime } from '../lib/config.ts';
import { errorText } from '../lib/errors.ts';
import { runProgram } from '../lib/run-program.ts';

export interface ChosenRuntime {
  readonly name: 'node' | 'bun';
  /** Null for the program that this process runs in. */
  readonly program: string | null;
  readonly why: string;
}

export const onNode = (why: string): ChosenRuntime => ({ name: 'node', program: null, why });

/** `auto` is Bun where it works. Rejects when Bun was asked for by name and does not work. */
export async function chooseProxyRuntime(wanted: ProxyRuntime, find = findBun): Promise<ChosenRuntime> {
  if (wanted === 'node') return onNode('CATNAP_PROXY_RUNTIME says so');
  const problems: string[] = [];
  for (const program of find()) {
    try {
      const version = await runProgram(program, ['--version']);
      return { name: 'bun', program, why: `Bun ${version.trim()} is installed and works` };
    } catch (thrown) {
      problems.push(errorText(thrown));
    }
  }
  const problem = problems.length === 0 ? 'the npm package bun is not installed' : `Bun does not work: ${problems[0]}`;
  if (wanted === 'auto') return onNode(problem);
  throw new Error(`CATNAP_PROXY_RUNTIME is bun, and ${problem}`);
}

/**
 * Where the binary may be: npm unpacks it in a package for the platform, and the script of the package `bun`, unless
 * scripts are off, moves it over.
 */
function findBun(): string[] {
  const resolve = createRequire(import.meta.url).resolve;
  const folderOf = (name: string): string[] => {
    try {
      return [join(resolve(`${name}/package.json`), '..')];
    } catch {
      return [];
    }
  };
  const arch = process.arch === 'arm64' ? 'aarch64' : process.arch;
  return [
    ...folderOf('bun').map((folder) => join(folder, 'bin/bun.exe')),
    ...folderOf(`@oven/bun-${process.platform}-${arch}`).map((folder) => join(folder, 'bin/bun')),
  ];
}
