/** What computes have used: limits as the kubelet reports them, and the kernel's counters of their containers. */
import type { ComputeRef, ComputeSample } from '../../interface/driver.ts';
import { type ContainerUsage, readContainerUsage } from '../../server/cgroup-usage.ts';
import { bytesIn, coresIn, serverContainer } from '../manifests/sizes.ts';
import type { Pod } from '../objects/kinds.ts';
import { type ComputeServers, type FoundServer, NotRunningError } from './compute-servers.ts';

export class Samples {
  readonly #servers: ComputeServers;
  /**
   * Counters of a container go on over naps. What they stood at when a server was first seen is taken off, so that its
   * own begin at nothing; what it used before that first look is lost to the accounts.
   */
  readonly #begins = new Map<string, { readonly of: string; readonly usage: ContainerUsage }>();

  constructor(servers: ComputeServers) {
    this.#servers = servers;
  }

  /** Null when none runs. */
  async take(ref: ComputeRef, found: FoundServer): Promise<ComputeSample | null> {
    const limits = found.pod && limitsInForce(found.pod);
    const usage = await this.#servers.enterFound(ref, found, readContainerUsage).catch((error: unknown) => {
      if (error instanceof NotRunningError) return null;
      throw error;
    });
    if (usage === null) return null;
    const begin = this.#beginOf(ref, `${found.generation} ${found.pod?.metadata.uid}`, usage);
    const since = (name: keyof ContainerUsage) => usage[name] - begin[name];
    return {
      ...usage,
      endpointId: ref.endpointId,
      isEnforced: true,
      cpuSeconds: since('cpuSeconds'),
      periods: since('periods'),
      throttledPeriods: since('throttledPeriods'),
      refaultBytes: since('refaultBytes'),
      oomKills: since('oomKills'),
      isPaused: false,
      cpus: limits?.cpus ?? null,
      memoryLimitBytes: limits?.memoryBytes ?? null,
      waitsAtLimit: false,
    };
  }

  forget({ endpointId }: Pick<ComputeRef, 'endpointId'>): void {
    this.#begins.delete(endpointId);
  }

  #beginOf({ endpointId }: ComputeRef, of: string, usage: ContainerUsage): ContainerUsage {
    const known = this.#begins.get(endpointId);
    // A container that was started again counts from nothing.
    if (known?.of === of && known.usage.cpuSeconds <= usage.cpuSeconds) return known.usage;
    this.#begins.set(endpointId, { of, usage });
    return usage;
  }
}

function limitsInForce({ status }: Pod): { readonly cpus: number; readonly memoryBytes: number } | null {
  const found = status?.containerStatuses?.find(({ name }) => name === serverContainer)?.resources;
  return found === undefined ? null : { cpus: coresIn(found.limits.cpu), memoryBytes: bytesIn(found.limits.memory) };
}
