/** What computes have used: limits as the kubelet reports them, and the kernel's counters of their containers. */
import type { ComputeRef, ComputeSample } from '../../interface/driver.ts';
import { adminLogin, openSession, type Session } from '../../server/admin-session.ts';
import { type ContainerUsage, readContainerUsage } from '../../server/cgroup-usage.ts';
import { bytesIn, coresIn, serverContainer } from '../manifests/sizes.ts';
import type { Pod } from '../objects/kinds.ts';
import { type ComputeServers, type FoundServer, NotRunningError, type RunningServer } from './compute-servers.ts';

/** Computes with a range are sampled twice a second, and a login each time would cost more than they do. */
const kept = { idleSeconds: 10, connectSeconds: 2 };

export class Samples {
  readonly #servers: ComputeServers;
  /**
   * Counters of a container go on over naps. What they stood at when a server was first seen is taken off, so that its
   * own begin at nothing; what it used before that first look is lost to the accounts.
   */
  readonly #begins = new Map<string, { readonly of: string; readonly usage: ContainerUsage }>();

  readonly #sessions = new Map<string, { readonly of: string; readonly sql: Session }>();

  constructor(servers: ComputeServers) {
    this.#servers = servers;
  }

  /** Null when none runs. */
  async take(ref: ComputeRef, found: FoundServer): Promise<ComputeSample | null> {
    const limits = found.pod && limitsInForce(found.pod);
    const of = `${found.generation} ${found.pod?.metadata.uid}`;
    const usage = await this.#read(ref, found, of);
    if (usage === null) return null;
    const begin = this.#beginOf(ref, of, usage);
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
    this.#endSession(endpointId);
  }

  async #read(ref: ComputeRef, found: FoundServer, of: string): Promise<ContainerUsage | null> {
    const session = this.#sessions.get(ref.endpointId);
    if (session?.of === of) {
      try {
        return await readContainerUsage(session.sql);
      } catch {
        // The server has ended, or ended the session; a new one tells which.
      }
    }
    this.#endSession(ref.endpointId);
    const readAndKeep = (sql: Session, { address, adminSecret }: RunningServer) => {
      this.#sessions.set(ref.endpointId, { of, sql: openSession(address, adminLogin(adminSecret), kept) });
      return readContainerUsage(sql);
    };
    return this.#servers.enterFound(ref, found, readAndKeep).catch((error: unknown) => {
      this.#endSession(ref.endpointId);
      if (error instanceof NotRunningError) return null;
      throw error;
    });
  }

  #endSession(endpointId: string): void {
    const session = this.#sessions.get(endpointId);
    this.#sessions.delete(endpointId);
    void session?.sql.end({ timeout: 1 }).catch(() => undefined);
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
