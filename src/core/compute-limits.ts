/** The size that a compute has at the moment, within its range, as what it is held to. Pure. */

import type { ComputeLimits, SizeRange } from '../lib/model.ts';
import { memoryBytes, processesMax, sizeSettings } from './sizing.ts';

/** Whether these hold already; `sample` is of the running compute. */
export function areInForce(
  limits: ComputeLimits,
  sample: { readonly cpus: number | null; readonly memoryLimitBytes: number | null; readonly waitsAtLimit: boolean },
): boolean {
  return (
    sample.cpus === limits.cpus &&
    sample.memoryLimitBytes === limits.memoryBytes &&
    sample.waitsAtLimit === limits.mayGrow
  );
}

/**
 * `settings` are those that the server was started with, `chosen` those of them that its owner asked for, which do not
 * follow the size.
 */
export function limitsAt(
  cu: number,
  range: SizeRange,
  settings: Readonly<Record<string, string>>,
  chosen: Readonly<Record<string, string>>,
): ComputeLimits {
  const following = Object.entries(sizeSettings(cu)).filter(([name]) => chosen[name] === undefined);
  return {
    cpus: cu,
    memoryBytes: memoryBytes(cu),
    processes: processesMax(settings),
    mayGrow: cu < range.maxCu,
    settings: Object.fromEntries(following),
  };
}
