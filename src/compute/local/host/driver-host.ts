/** The local driver in the parent process: prepares majors, serves children, finds out what the machine allows. */
import type { Config } from '../../../lib/config.ts';
import type { Logger } from '../../../lib/log.ts';
import type { DriverAccess, DriverChannel, DriverHost, HostFacts, ReadyServer } from '../../interface/driver-host.ts';
import type { HostCalls } from '../channel/host-calls.ts';
import { serveHost } from '../channel/remote.ts';
import { removeUnfinishedCopies } from './branches/leftovers.ts';
import { detectCloneMethod } from './copy/method.ts';
import { startCopyThreads } from './copy/threads.ts';
import { removeLostHistories } from './history/leftovers.ts';
import type { Layout } from './home/layout.ts';
import { removeUnownedSockets } from './home/leftovers.ts';
import { PrivilegedHost } from './privileged-host.ts';

/** Prepared before the first project asks for it; the other majors follow in the background. */
const defaultMajor = 17;
/** Two copies of 46 MB: enough for one person; when many projects are made there are more of them. */
const sparesOfEachMajor = 2;
/** The threads that copy take processor time from everything else that starts; a copy before then starts its own. */
const threadsAfterMs = 5_000;

export class LocalDriverHost implements DriverHost {
  readonly #config: Config;
  readonly #layout: Layout;
  readonly #log: Logger;
  readonly #host: PrivilegedHost;
  readonly #served: Readonly<Record<DriverAccess, Partial<HostCalls>>>;
  #startingThreads: NodeJS.Timeout | undefined;

  constructor(config: Config, layout: Layout, log: Logger) {
    this.#config = config;
    this.#layout = layout;
    this.#log = log;
    const host = new PrivilegedHost(config, layout, (err, message) => log.warn({ err }, message), sparesOfEachMajor);
    this.#host = host;
    const { readLog, listExtensions } = host;
    const checks = { checkSettings: host.checkSettings.bind(host), readLog, listExtensions };
    this.#served = { all: host, checks, none: {} };
  }

  async prepare(progress: (line: string) => void): Promise<void> {
    await removeUnfinishedCopies(this.#layout);
    await removeUnownedSockets(this.#layout);
    await removeLostHistories(this.#layout);
    await this.#host.prepare(defaultMajor, progress);
    this.#startingThreads = setTimeout(startCopyThreads, threadsAfterMs).unref();
    void this.#prepareOthers();
  }

  async readFacts(): Promise<HostFacts> {
    const [temporaryDiskEnforcement, limitsProblem, network, storageMethod, releases] = await Promise.all([
      this.#host.temporaryDisk(),
      this.#host.limitsProblem(),
      this.#host.networkFacts(),
      detectCloneMethod(this.#layout.root),
      this.#findReleases(),
    ]);
    const { histories: historyDirectory } = this.#layout;
    const found = { temporaryDiskEnforcement, limitsProblem, ...network, storageMethod, releases, historyDirectory };
    return { dataIsHere: true, ...found };
  }

  serve(child: DriverChannel, access: DriverAccess): void {
    serveHost(this.#served[access], child);
  }

  follow(onReady: (server: ReadyServer) => void): () => void {
    return this.#host.readyServers.follow(onReady);
  }

  close(): Promise<void> {
    clearTimeout(this.#startingThreads);
    return this.#host.close();
  }

  async #prepareOthers(): Promise<void> {
    for (const major of this.#config.pgVersions.filter((version) => version !== defaultMajor)) {
      await this.#host
        .prepare(major, (line) => this.#log.info(line))
        .catch((error) =>
          this.#log.error({ err: error, major }, 'a major could not be prepared; its projects will fail'),
        );
    }
  }

  async #findReleases(): Promise<Record<number, string>> {
    const entries = this.#config.pgVersions.map(async (major) => [major, await this.#host.release(major)] as const);
    return Object.fromEntries(await Promise.all(entries));
  }
}
