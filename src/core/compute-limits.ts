/** The size that a compute has at the moment, within its range, as what it is held to. Pure. */
import { memoryBytes, processesMax, type SizeRange, sizeSettings } from './sizing.ts';

export interface Limits {
  readonly cpus: number;
  readonly memoryBytes: number;
  readonly processes: number;
  readonly mayGrow: boolean;
  readonly settings: Readonly<Record<string, string>>;
}

/** Whether these hold already; `sample` is of the running compute. */
export function areInForce(
  limits: Limits,
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
): Limits {
  const following = Object.entries(sizeSettings(cu)).filter(([name]) => chosen[name] === undefined);
  return {
    cpus: cu,
    memoryBytes: memoryBytes(cu),
    processes: processesMax(settings),
    mayGrow: cu < range.maxCu,
    settings: Object.fromEntries(following),
  };
}
