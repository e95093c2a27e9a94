/**
 * The Kubernetes driver in the parent process: makes sure of the cluster, lets naps become deep sleep, and checks
 * settings with the Postgres that Catnap brings along. Nothing here needs rights on this machine.
 */
import { join } from 'node:path';
import type { Config } from '../../../lib/config.ts';
import type { KubernetesSettings } from '../../../lib/kubernetes-settings.ts';
import type { Logger } from '../../../lib/log.ts';
import type { DriverAccess, DriverChannel, DriverHost, HostFacts } from '../../interface/driver-host.ts';
import { serveHost } from '../../local/channel/remote.ts';
import type { Layout } from '../../local/host/home/layout.ts';
import { Majors } from '../../local/host/postgres/majors.ts';
import { checkSettings } from '../../local/host/postgres/settings-check.ts';
import { deepenSleep } from '../driver/deep-sleep.ts';
import { releaseOf } from '../manifests/images.ts';
import { labelsOfEverything } from '../manifests/labels.ts';
import { clusters } from '../objects/kinds.ts';
import { type OpenedCluster, openCluster } from '../open-client.ts';

/** How often naps are looked through, or more often where they become deep sooner. */
const lookMsMax = 60_000;
const lookMsMin = 1_000;

export class KubernetesDriverHost implements DriverHost {
  readonly #settings: KubernetesSettings;
  readonly #log: Logger;
  readonly #majors: Majors;
  #cluster: Promise<OpenedCluster> | null = null;
  #looking: NodeJS.Timeout | undefined;
  #look: Promise<void> = Promise.resolve();

  constructor(settings: KubernetesSettings, config: Config, layout: Layout, log: Logger) {
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
    const { deepSleepSeconds } = this.#settings;
    if (deepSleepSeconds === 0) return;
    const everyMs = Math.min(lookMsMax, Math.max(lookMsMin, (deepSleepSeconds * 1_000) / 4));
    this.#looking = setInterval(() => {
      this.#look = this.#look.then(() => this.#deepen());
    }, everyMs).unref();
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
    clearInterval(this.#looking);
    await this.#look;
    const opened = await this.#cluster?.catch(() => null);
    opened?.client.close();
  }

  #open(): Promise<OpenedCluster> {
    this.#cluster ??= openCluster(this.#settings);
    return this.#cluster;
  }

  async #deepen(): Promise<void> {
    try {
      const { client } = await this.#open();
      const count = await deepenSleep(client, this.#settings.deepSleepSeconds);
      if (count > 0) this.#log.info({ count }, 'computes that have napped for long are in deep sleep now');
    } catch (error) {
      this.#log.warn({ err: error }, 'computes could not be put into deep sleep');
    }
  }
}
