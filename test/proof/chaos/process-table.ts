/** The processes of one home as the kernel lists them: Catnap's own, servers, and what runs inside servers. */
import { readdirSync, readFileSync } from 'node:fs';

export interface FoundProcess {
  readonly pid: number;
  readonly parentPid: number;
  /** One word for a process that has renamed itself, as those of a server do. */
  readonly words: readonly string[];
}

export interface FoundServer extends FoundProcess {
  readonly dataDirectory: string;
  /** Null for the system database, and for servers that Catnap runs for itself. */
  readonly endpointId: string | null;
}

export class ProcessTable {
  readonly #all: readonly FoundProcess[];
  readonly #home: string;

  constructor(home: string, all = readProcesses()) {
    this.#home = home;
    this.#all = all;
  }

  childrenOf(pid: number): FoundProcess[] {
    return this.#all.filter(({ parentPid }) => parentPid === pid);
  }

  /** Catnap's child processes of one name, whichever parent started them. */
  roles(parentPid: number, name: string): FoundProcess[] {
    // Behind the options of its runtime, which are several on Bun.
    const nameIn = (words: readonly string[]) => words[words.findIndex((word) => word.endsWith('/child.js')) + 1];
    return this.childrenOf(parentPid).filter(({ words }) => words.length > 2 && nameIn(words) === name);
  }

  servers(): FoundServer[] {
    const named = this.#namedServers();
    return [...named.values()]
      .filter(({ parentPid }) => !named.has(parentPid))
      .map((found) => ({
        ...found,
        dataDirectory: found.words[found.words.indexOf('-D') + 1] ?? '',
        endpointId: settingOf(found.words, 'catnap.endpoint'),
      }));
  }

  /** With what a server is just forking, several at once when it starts: that has its words until it renames itself. */
  #namedServers(): ReadonlyMap<number, FoundProcess> {
    const isOfHome = (word: string) => word.startsWith(`${this.#home}/`);
    const named = this.#all.filter(({ words }) => words[0]?.endsWith('/postgres') && words.some(isOfHome));
    return new Map(named.map((found) => [found.pid, found]));
  }

  systemServer(): FoundServer | undefined {
    return this.servers().find(({ dataDirectory }) => dataDirectory === `${this.#home}/system/pgdata`);
  }

  computes(): FoundServer[] {
    return this.servers().filter(({ endpointId }) => endpointId !== null);
  }

  /** Processes of a server by what they call themselves: `checkpointer`, `walsender`. */
  inside(server: FoundProcess, title: RegExp): FoundProcess[] {
    return this.childrenOf(server.pid).filter(({ words }) => title.test(words[0] ?? ''));
  }

  /** Those that name the home on their command line, servers left out. */
  others(): FoundProcess[] {
    const servers = this.#namedServers();
    const isOfHome = (word: string) => word.startsWith(`${this.#home}/`) || word === this.#home;
    return this.#all.filter(({ pid, words }) => !servers.has(pid) && pid !== process.pid && words.some(isOfHome));
  }
}

/** What a client's session in a server is called: `postgres: ep-x: neondb_owner neondb [local] idle`. */
export const clientBackend = /^postgres: \S+: (?!catnap_|walsender)\S+ \S+ \[local\]/;
export const systemBackend = /^postgres: catnap-system: \S+ \S+ \[local\]/;

function settingOf(words: readonly string[], name: string): string | null {
  return words.find((word) => word.startsWith(`${name}=`))?.slice(name.length + 1) ?? null;
}

function readProcesses(): FoundProcess[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.flatMap((name) => {
    try {
      // A zombie has no words left.
      const words = readFileSync(`/proc/${name}/cmdline`, 'utf8').split('\0').slice(0, -1);
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
      const parentPid = Number(stat.slice(stat.lastIndexOf(') ') + 2).split(' ')[1]);
      return words.length === 0 ? [] : [{ pid: Number(name), parentPid, words }];
    } catch {
      return [];
    }
  });
}

/** False when the process has ended meanwhile. */
export function sendSignal(pid: number, signal: NodeJS.Signals): boolean {
  try {
    process.kill(pid, signal);
    return true;
  } catch {
    return false;
  }
}

/** A zombie is not. */
export function isAlive(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8') !== '';
  } catch {
    return false;
  }
}
