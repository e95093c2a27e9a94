/** Every process of Catnap's is replaced, one after the other: no request and no pooled transaction may notice. */
import { eventually } from '../../helpers/eventually.ts';
import { always, type Fault } from '../chaos/faults/fault.ts';
import { pidsOf } from '../chaos/faults/of-catnap.ts';
import { sendSignal } from '../chaos/process-table.ts';
import type { World } from '../chaos/world.ts';
import type { PooledLoad } from './pooled-load.ts';

const roles = ['api', 'worker', 'proxy'];
const ofEach = 2;

export function rollingRestart(load: PooledLoad): Fault {
  return { name: 'rolling restart', weight: 1, isPossible: always, strike: (world) => restartAll(world, load) };
}

async function restartAll(world: World, load: PooledLoad): Promise<number> {
  await load.untilServed();
  const before = { brokenCalls: world.brokenCalls, brokenOff: load.brokenOff };
  // One that was killed a moment ago is not back yet, and would be taken for one that is new.
  const old = await eventually(() => {
    const all = roles.map((role) => pidsOf(world, role));
    if (all.some((pids) => pids.length !== ofEach)) throw new Error(`not two of each: ${JSON.stringify(all)}`);
    return all;
  });
  sendSignal(world.program.pid, 'SIGUSR2');
  await eventually(() => {
    const now = roles.map((role) => pidsOf(world, role));
    const isDone = now.every((pids, place) => {
      const earlier = old[place] ?? [];
      return pids.length === earlier.length && pids.every((pid) => !earlier.includes(pid));
    });
    if (!isDone) throw new Error(`processes were not replaced: ${JSON.stringify({ old, now })}`);
  });
  // The last of them may just have been started.
  await load.untilServed();
  const [calls, transactions] = [world.brokenCalls - before.brokenCalls, load.brokenOff - before.brokenOff];
  load.brokenOffByRestarts += transactions;
  if (calls > 0) world.violations.push(`a rolling restart has cost ${calls} requests to the API`);
  if (transactions > 0) world.violations.push(`a rolling restart has broken off ${transactions} pooled transactions`);
  return old.flat().length;
}
