/**
 * The Kubernetes driver in the parent process: makes sure of the cluster, lets naps become deep sleep, also to make
 * room on a node, replaces pods whose server does not come back, and checks settings with the Postgres that Catnap
 * brings along. Nothing here needs rights on this machine.
 */
import { join } from 'node:path';
import { type Clock, systemClock } from '../../../lib/clock.ts';
import type { Config } from '../../../lib/config.ts';
import type { KubernetesSettings } from '../../../lib/kubernetes-settings.ts';
import type { Logger } from '../../../lib/log.ts';
import type { DriverAccess, DriverChannel, DriverHost, HostFacts } from '../../interface/driver-host.ts';
import { serveHost } from '../../local/channel/remote.ts';
import type { Layout } from '../../local/host/home/layout.ts';
import { Majors } from '../../local/host/postgres/majors.ts';
import { checkSettings } from '../../local/host/postgres/settings-check.ts';
import { deepenSleep } from '../driver/deep-sleep.ts';
import { NodeShortage } from '../driver/node-shortage.ts';
import { StalledServers } from '../driver/stalled-servers.ts';
import { releaseOf } from '../manifests/images.ts';
import { labelsOfEverything } from '../manifests/labels.ts';
import { clusters } from '../objects/kinds.ts';
import { type OpenedCluster, openCluster } from '../open-client.ts';

/** How often naps are looked through, or more often where they become deep sooner. */
const lookMsMax = 60_000;
const lookMsMin = 1_000;
/** How often servers that should run are looked at, as far as the operator does not call them ready. */
const stalledMs = 2_000;
/** How often pods are looked through for one that waits for room. */
const shortageMs = 2_000;

export class KubernetesDriverHost implements DriverHost {
  readonly #settings: KubernetesSettings;
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #majors: Majors;
  #cluster: Promise<OpenedCluster> | null = null;
  readonly #timers: NodeJS.Timeout[] = [];
  readonly #underWay = new Set<Promise<void>>();

  constructor(settings: KubernetesSettings, config: Config, layout: Layout, log: Logger, clock: Clock = systemClock) {
    this.#clock = clock;
    this.#settings = settings;
    this.#log = log;
    // For the check of settings alone: no compute runs from these binaries.
    this.#majors = new Majors({ ...config, extensions: { roots: { 17: [], 18: [] }, allowed: [] } }, layout);
  }

  async prepare(progress: (line: string) => void): Promise<void> {
    const { client } = await this.#open();
    progress(`Computes run on Kubernetes, in the namespace ${client.namespace}.`);
    await client.list(clusters, labelsOfEverything).catch((cause: unknown) => {
      throw new Error('the cluster does not list Clusters of CloudNativePG: is its operator installed?', { cause });
    });
    const stalled = new StalledServers(client);
    this.#repeat(stalledMs, 'pods without a server could not be replaced', async () => {
      const removed = await stalled.look(this.#clock.now());
      for (const pod of removed) this.#log.warn({ pod }, 'the server of a pod had ended for good; the pod is replaced');
    });
    const shortage = new NodeShortage(client);
    this.#repeat(shortageMs, 'no room could be made on nodes that are short', async () => {
      const count = await shortage.look();
      if (count > 0)
        this.#log.info({ count }, 'computes that napped are in deep sleep now, as a node has no room left');
    });
    const { deepSleepSeconds } = this.#settings;
    if (deepSleepSeconds === 0) return;
    const everyMs = Math.min(lookMsMax, Math.max(lookMsMin, (deepSleepSeconds * 1_000) / 4));
    this.#repeat(everyMs, 'computes could not be put into deep sleep', async () => {
      const count = await deepenSleep(client, deepSleepSeconds, this.#clock.now());
      if (count > 0) this.#log.info({ count }, 'computes that have napped for long are in deep sleep now');
    });
  }

  /** A look that takes long is not begun a second time meanwhile. */
  #repeat(everyMs: number, failure: string, look: () => Promise<void>): void {
    let isUnderWay = false;
    const lookOnce = async () => {
      isUnderWay = true;
      try {
        await look();
      } catch (error) {
        this.#log.warn({ err: error }, failure);
      } finally {
        isUnderWay = false;
      }
    };
    const tick = () => {
      if (isUnderWay) return;
      const looking = lookOnce().finally(() => this.#underWay.delete(looking));
      this.#underWay.add(looking);
    };
    this.#timers.push(setInterval(tick, everyMs).unref());
  }

  async readFacts(): Promise<HostFacts> {
    const releases = Object.entries(this.#settings.images).map(([major, image]) => [Number(major), releaseOf(image)]);
    return {
      dataIsHere: false,
      releases: Object.fromEntries(releases),
      temporaryDiskEnforcement: 'session',
      storageMethod: null,
      limitsProblem: null,
      networkProblem: 'network policies of the cluster decide what SQL in computes reaches',
      outsideProblem: null,
      historyDirectory: null,
    };
  }

  serve(child: DriverChannel, access: DriverAccess): void {
    const check = async (pgVersion: number, settings: Readonly<Record<string, string>>) => {
      const { build, template } = await this.#majors.ready(pgVersion);
      return checkSettings(join(build.bin, 'postgres'), template.dataDirectory, settings);
    };
    serveHost(access === 'none' ? {} : { checkSettings: check }, child);
  }

  /** A start returns when its server answers, so nothing is told ahead of it. */
  follow(): () => void {
    return () => undefined;
  }

  async close(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    await Promise.all(this.#underWay);
    const opened = await this.#cluster?.catch(() => null);
    opened?.client.close();
  }

  #open(): Promise<OpenedCluster> {
    this.#cluster ??= openCluster(this.#settings);
    return this.#cluster;
  }
}
