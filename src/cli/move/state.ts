/**
 * How far a move is, in a file: what the two Catnaps and the target's databases cannot tell by themselves. It is
 * written before what it announces is done, so that a run after a kill finds out. It holds names and no password.
 */
import { randomUUID } from 'node:crypto';
import { mkdir, open, readFile, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { CliFailure } from '../kit/failure.ts';

export interface MoveState {
  readonly format: 1;
  /** Makes the creation of the target project repeatable. */
  readonly id: string;
  readonly from: { readonly url: string; readonly project: string };
  readonly to: {
    readonly url: string;
    readonly project?: string;
    readonly branch?: string;
    readonly endpoint?: string;
  };
  /** By name: the names under which the source databases are closed to their clients. */
  readonly closedAs?: Readonly<Record<string, string>> | undefined;
  readonly closedAt?: string | undefined;
  readonly finishedAt?: string;
}

export interface StateFile {
  readonly path: string;
  read(): MoveState;
  /** On disk when it resolves. */
  change(change: Partial<MoveState>): Promise<void>;
  remove(): Promise<void>;
}

export interface Ends {
  readonly from: { readonly url: string; readonly project: string };
  readonly to: { readonly url: string };
}

/** The state of an earlier run between the same ends, or a new one, which is not on disk before its first change. */
export async function openState(folder: string, { from, to }: Ends): Promise<StateFile> {
  const path = join(folder, `catnap-move-${from.project}.json`);
  let state = (await readState(path)) ?? { format: 1, id: randomUUID(), from, to };
  if (state.from.url !== from.url || state.to.url !== to.url) {
    throw new CliFailure(
      `${path} is of a move from ${state.from.url} to ${state.to.url}: go on with that one, or name another --state`,
    );
  }
  return {
    path,
    read: () => state,
    async change(change) {
      state = { ...state, ...change };
      await writeState(path, state);
    },
    remove: () => rm(path, { force: true }),
  };
}

async function readState(path: string): Promise<MoveState | null> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw new CliFailure(`${path} cannot be read (${error.code})`);
  });
  if (text === null) return null;
  const state = parse(text);
  if (state?.format === 1) return state;
  throw new CliFailure(`${path} is not the state of a move`);
}

function parse(text: string): MoveState | null {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

async function writeState(path: string, state: MoveState): Promise<void> {
  try {
    await mkdir(dirname(path), { recursive: true });
    const file = await open(`${path}.new`, 'w', 0o600);
    try {
      await file.writeFile(`${JSON.stringify(state, null, 2)}\n`);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(`${path}.new`, path);
  } catch (error) {
    throw new CliFailure(`${path} cannot be written: ${error instanceof Error ? error.message : String(error)}`);
  }
}
