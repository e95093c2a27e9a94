/**
 * Compute sizes and what follows from them, as the specification's table has it: settings, and the limits that a
 * compute is held to at the size it has at the moment. Pure. One CU is one vCPU and 4 GiB of memory.
 */
import { invalid } from '../lib/errors.ts';
import type { ComputeLimits, SizeRange } from '../lib/model.ts';
import type { Plan } from './plan.ts';

const gib = 1024 ** 3;
const autoscalingCuMax = 16;
const connectionsMax = 4000;
/** Bytes of memory counted for each connection; gives the specification's 112, 225, 450 … */
const bytesPerConnection = 9_531_392;

/** .25, .5, every whole number to 16, even numbers to 56. */
export const sizes: readonly number[] = [
  0.25,
  0.5,
  ...Array.from({ length: 16 }, (_, i) => i + 1),
  ...Array.from({ length: 20 }, (_, i) => 18 + 2 * i),
];

export const defaultSize: SizeRange = { minCu: 0.25, maxCu: 0.25 };

/** One bound without the other means a fixed size if the other's default would not fit. */
export function resolveSize(
  wanted: { minCu?: number | undefined; maxCu?: number | undefined },
  fallback: SizeRange,
): SizeRange {
  const minCu = wanted.minCu ?? (wanted.maxCu === undefined ? fallback.minCu : Math.min(fallback.minCu, wanted.maxCu));
  const maxCu = wanted.maxCu ?? (wanted.minCu === undefined ? fallback.maxCu : Math.max(fallback.maxCu, wanted.minCu));
  return { minCu, maxCu };
}

export function requireSize(size: SizeRange, plan: Plan): void {
  const allowed = '0.25, 0.5, 1 to 16 in steps of 1, 18 to 56 in steps of 2';
  for (const [field, value] of [
    ['autoscaling_limit_min_cu', size.minCu],
    ['autoscaling_limit_max_cu', size.maxCu],
  ] as const) {
    if (!sizes.includes(value)) throw invalid(`invalid request: ${field} must be one of ${allowed}`);
    if (value > plan.cuMax)
      throw invalid(`invalid request: ${field} must be at most ${plan.cuMax} on the plan "${plan.name}"`);
  }
  if (size.minCu > size.maxCu) {
    throw invalid('invalid request: autoscaling_limit_min_cu must not be greater than autoscaling_limit_max_cu');
  }
  if (size.maxCu > autoscalingCuMax && size.minCu !== size.maxCu) {
    throw invalid(
      `invalid request: sizes above ${autoscalingCuMax} CU are fixed: autoscaling_limit_min_cu must equal autoscaling_limit_max_cu`,
    );
  }
}

/** Cuts a size that was chosen under another plan down to this plan; it applies at the next start. */
export function clampSize(size: SizeRange, plan: Plan): SizeRange {
  return { minCu: Math.min(size.minCu, plan.cuMax), maxCu: Math.min(size.maxCu, plan.cuMax) };
}

export const memoryBytes = (cu: number) => cu * 4 * gib;

/** What the hosted service calls the local file cache; here the page cache does that work. */
export const fileCacheBytes = (cu: number) => 0.75 * memoryBytes(cu);

/** For a range, computed from the smaller of its maximum and eight times its minimum. */
export function maxConnections(size: SizeRange): number {
  const effectiveCu = Math.min(size.maxCu, 8 * size.minCu);
  return Math.min(connectionsMax, Math.floor(memoryBytes(effectiveCu) / bytesPerConnection));
}

/** The greater of 20 GiB and 15 GiB times the maximum size. */
export function temporaryDiskBytes(size: SizeRange): number {
  return Math.max(20 * gib, 15 * gib * size.maxCu);
}

/** The operator may set it for the whole installation. */
export function temporaryDiskLimit(config: { readonly tempDiskBytes: number | undefined }, size: SizeRange): number {
  return config.tempDiskBytes ?? temporaryDiskBytes(size);
}

/** How many processes a server may have: connections, workers, helpers, and some short-lived ones. */
export function processesMax(settings: Readonly<Record<string, string>>): number {
  const connections = Number(settings.max_connections ?? connectionsMax);
  const workers = Number(settings.max_worker_processes ?? 8);
  const senders = Number(settings.max_wal_senders ?? 10);
  return connections + workers + senders + 128;
}

/** Connections that stay free for Catnap's own logins, so that a full server can still be managed. */
const reservedConnections = 7;

/** Server settings that follow from the size alone. `shared_buffers` stays small: the page cache does the caching. */
export function serverSettings(size: SizeRange): Record<string, string> {
  const connections = maxConnections(size);
  const workers = 13 + Math.floor(2 * size.maxCu);
  const backends = 1 + connections + workers;
  const sharedBuffersMb = Math.max(128, Math.floor((1023 + backends * 256) / 1024));
  const maintenanceKb = Math.max(Math.floor((memoryBytes(size.minCu) * 1024) / 63_963_136), 65_536);
  return {
    max_connections: String(connections),
    superuser_reserved_connections: String(reservedConnections),
    max_worker_processes: String(workers),
    shared_buffers: `${sharedBuffersMb}MB`,
    maintenance_work_mem: `${maintenanceKb}kB`,
    ...sizeSettings(size.maxCu),
  };
}

/**
 * Settings of a server that takes part in logical replication. Each session that decodes may keep this much memory for
 * open transactions before it spills to disk.
 */
export function logicalReplicationSettings({ minCu, maxCu }: SizeRange): Record<string, string> {
  return {
    wal_level: 'logical',
    max_logical_replication_workers: String(4 + Math.floor(maxCu)),
    logical_decoding_work_mem: `${Math.min(64, Math.floor(64 * minCu))}MB`,
  };
}

/** Those of the settings that can follow the size of a server while it runs. */
export function sizeSettings(cu: number): Record<string, string> {
  return { effective_cache_size: `${Math.floor(fileCacheBytes(cu) / 1024)}kB` };
}

/** Whether these limits are in force already; `sample` is of the running compute. */
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
