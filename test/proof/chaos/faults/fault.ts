/** What a fault is, and what several of them do: pick victims, stop them for a while, start Catnap again. */
import { eventually, letRun } from '../../../helpers/eventually.ts';
import type { Random } from '../../random.ts';
import { type FoundServer, isAlive, sendSignal } from '../process-table.ts';
import type { World } from '../world.ts';

export interface Fault {
  /** As the table of the ledger has it. */
  readonly name: string;
  /** How often it is chosen, compared with others. */
  readonly weight: number;
  isPossible(world: World): boolean;
  /** Resolves with how many things were struck, when the fault itself is over and recovery may begin. */
  strike(world: World, random: Random): Promise<number>;
  /** What an operator or a service manager does then. */
  mend?(world: World): Promise<void>;
}

export const always = () => true;

/** Resolves when they are gone: until then, somebody may still be served by one of them. */
export async function killAll(pids: readonly number[]): Promise<number> {
  const killed = pids.filter((pid) => sendSignal(pid, 'SIGKILL'));
  await untilGone(killed);
  return killed.length;
}

/** Servers, and what runs inside them, which ends by itself when its postmaster has. */
export async function killServers(world: World, servers: readonly FoundServer[]): Promise<number> {
  const table = world.processes();
  const inside = servers.flatMap(({ pid }) => table.childrenOf(pid)).map(({ pid }) => pid);
  const killed = await killAll(servers.map(({ pid }) => pid));
  await untilGone(inside);
  return killed;
}

async function untilGone(pids: readonly number[]): Promise<void> {
  await eventually(() => {
    const left = pids.filter(isAlive);
    if (left.length > 0) throw new Error(`killed processes still run: ${left.join(', ')}`);
  });
}

/** The processes are stopped, and go on after a while as if nothing had been. */
export async function stopForAWhile(pids: readonly number[], random: Random): Promise<number> {
  const stopped = pids.filter((pid) => sendSignal(pid, 'SIGSTOP'));
  // Seldom so long that others give up waiting.
  await letRun(random.chance(0.1) ? random.between(6_000, 12_000) : random.between(200, 2_000));
  for (const pid of stopped) sendSignal(pid, 'SIGCONT');
  return stopped.length;
}

/** Up to `most` of them, at least one if there is one. */
export function pickSome<T>(from: readonly T[], most: number, random: Random): T[] {
  const left = [...from];
  const wanted = Math.min(left.length, random.between(1, most));
  return Array.from({ length: wanted }, () => left.splice(random.below(left.length), 1)).flat();
}

/** As a service manager does: again, if the first start comes too early. */
export async function startAgain(world: World): Promise<void> {
  await eventually(() => world.program.start(), { everyMs: 200 });
}
