/** The whole program, as a person starts it: built, in a home of its own, on free ports. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { chown, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { inject } from 'vitest';
import { bindSharedPort, type SharedPort } from '../../src/processes/parent/shared-port.ts';
import { validateReply } from './contract.ts';
import { eventually, usualDeadlineMs } from './eventually.ts';
import { freePorts } from './free-ports.ts';
import { takeSystem } from './prepared-system.ts';
import { noteEnd, noteStart } from './running-programs.ts';
import { makeTempHome, type TempHome } from './temp-home.ts';

const builtHere = fileURLToPath(new URL('../../dist/bin.js', import.meta.url));
const startMsMax = 180_000;
/** Of the log, after a failure. */
const lastWords = 6_000;
const describeMsMax = 5_000;

const ended = ['finished', 'error', 'cancelled', 'skipped'];

export interface Reply {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: tests read what they expect, and the contract is checked before.
  readonly body: any;
}

interface Place {
  /** A folder on the filesystem that the home is to be on. */
  readonly under?: string;
  readonly ownBuilds?: boolean;
  /** An ordinary user who runs it, and who needs builds of their own. */
  readonly uid?: number;
  /** Another copy of the program. */
  readonly entry?: string;
  /** Opens the ports here and passes them on, as a service manager does. */
  readonly passesPorts?: boolean;
}

/** One data home and its ports; the program in it may be started, killed and started again. */
export class Program {
  readonly home: TempHome;
  readonly httpPort: number;
  readonly pgPort: number;
  readonly #env: Readonly<Record<string, string>>;
  readonly #uid: number | undefined;
  readonly #entry: string;
  readonly #passed: readonly SharedPort[];
  #child: ChildProcess | undefined;
  output = '';

  private constructor(
    home: TempHome,
    ports: readonly [number, number],
    env: Readonly<Record<string, string>>,
    { uid, entry = builtHere, passesPorts }: Pick<Place, 'uid' | 'entry' | 'passesPorts'>,
  ) {
    this.home = home;
    this.#uid = uid;
    this.#entry = entry;
    this.httpPort = ports[0];
    this.pgPort = ports[1];
    this.#env = env;
    this.#passed = passesPorts === true ? ports.flatMap((port) => bindSharedPort('127.0.0.1', port) ?? []) : [];
  }

  static async create(env: Readonly<Record<string, string>> = {}, place: Place = {}): Promise<Program> {
    const shared = inject('sharedBuildsHome');
    const home = await makeTempHome({ share: shared, ...place });
    if (place.ownBuilds !== true) await takeSystem(shared, home.path);
    if (place.uid !== undefined) await chown(home.path, place.uid, place.uid);
    const [httpPort = 0, pgPort = 0] = await freePorts(2);
    return new Program(home, [httpPort, pgPort], env, place);
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  /** For this program, and for commands beside it. */
  get environment(): Readonly<Record<string, string | undefined>> {
    return {
      PATH: process.env.PATH,
      HOME: this.home.path,
      CATNAP_HOME: this.home.path,
      CATNAP_HTTP_PORT: String(this.httpPort),
      CATNAP_PG_PORT: String(this.pgPort),
      CATNAP_LOG_LEVEL: 'warn',
      // The same on every machine, unless a test says otherwise.
      CATNAP_PROXIES: '1',
      CATNAP_EXTENSIONS_17: 'off',
      CATNAP_EXTENSIONS_18: 'off',
      CATNAP_PROXY_RUNTIME: process.env.CATNAP_TEST_PROXY_RUNTIME ?? 'auto',
      ...this.#env,
    };
  }

  /** Resolves when the banner is printed. `entry` is another program on the same home. */
  async start(
    args: readonly string[] = [],
    env: Readonly<Record<string, string>> = {},
    entry = this.#entry,
  ): Promise<void> {
    this.output = '';
    noteStart(this);
    const words = [process.execPath, entry, 'up', ...args];
    // The variable names the process that the sockets are for, whose number only the process itself knows before.
    const passing = ['/bin/sh', '-c', 'LISTEN_PID=$$ exec "$@"', 'sh', ...words];
    const [program = '', ...rest] = this.#passed.length === 0 ? words : passing;
    const child = spawn(program, rest, {
      env: {
        ...this.environment,
        ...(this.#passed.length > 0 && { LISTEN_FDS: String(this.#passed.length) }),
        ...env,
      },
      stdio: ['ignore', 'pipe', 'pipe', ...this.#passed.map(({ fd }) => fd)],
      ...(this.#uid !== undefined && { uid: this.#uid, gid: this.#uid }),
    });
    this.#child = child;
    const collect = (chunk: Buffer) => {
      this.output += chunk.toString();
    };
    child.stdout?.on('data', collect);
    child.stderr?.on('data', collect);
    const hasEnded = () => child.exitCode !== null || child.signalCode !== null;
    await eventually(
      () => {
        if (hasEnded() || this.output.includes('Create a project')) return;
        throw new Error(`the program is not up yet:\n${this.output}`);
      },
      { deadlineMs: startMsMax },
    );
    if (hasEnded()) throw new Error(`the program ended while starting:\n${this.output}`);
  }

  /** As Ctrl-C does, or a service manager. Resolves with the exit code. */
  async stop(signal: 'SIGINT' | 'SIGTERM' = 'SIGINT'): Promise<number | null> {
    return this.#end(signal);
  }

  async killHard(): Promise<void> {
    await this.#end('SIGKILL');
  }

  async #end(signal: NodeJS.Signals): Promise<number | null> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return child?.exitCode ?? null;
    child.kill(signal);
    await once(child, 'exit');
    return child.exitCode;
  }

  /** Ends everything that belongs to the home, tenants' servers too, and removes it. */
  async destroy(): Promise<void> {
    noteEnd(this);
    await this.killHard();
    for (const port of this.#passed) port.close();
    const told = new Set<number>();
    // Looked for again and again: one may have been about to start when the program was killed.
    await eventually(async () => {
      const pids = await this.serverPids();
      for (const pid of pids.filter((one) => !told.has(one))) quit(pid);
      for (const pid of pids) told.add(pid);
      if (pids.length > 0) throw new Error(`servers of the home still run: ${pids.join(', ')}`);
    });
    await this.home.remove();
  }

  async apiKey(): Promise<string> {
    return (await readFile(join(this.home.path, 'api-key'), 'utf8')).trim();
  }

  /** Every reply is held against the published contract. */
  async api(method: string, path: string, body?: object, headers: Record<string, string> = {}): Promise<Reply> {
    const response = await fetch(`http://127.0.0.1:${this.httpPort}/api/v2${path}`, {
      method,
      headers: {
        authorization: `Bearer ${await this.apiKey()}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    const parsed: unknown = text === '' ? undefined : JSON.parse(text);
    validateReply(method, `/api/v2${path}`, response.status, parsed);
    return { status: response.status, body: parsed };
  }

  /** Deletes a project for good. */
  async removeProject(id: string): Promise<void> {
    for (const [method, path] of [
      ['DELETE', `/projects/${id}`],
      ['POST', `/projects/${id}/purge`],
    ] as const) {
      const { status } = await this.api(method, path);
      if (status !== 200) throw new Error(`${method} ${path} -> ${status}`);
    }
  }

  /** Waits until every operation of a project has come to its end. */
  async settle(projectId: string, deadlineMs = usualDeadlineMs): Promise<void> {
    await eventually(
      async () => {
        const { body } = await this.api('GET', `/projects/${projectId}/operations?limit=1000`);
        const open = body.operations.filter(({ status }: { status: string }) => !ended.includes(status));
        if (open.length > 0) throw new Error(`operations are not finished: ${JSON.stringify(open)}`);
      },
      { deadlineMs },
    );
  }

  /** The end of its log, and operations that have not ended. */
  async describe(): Promise<string> {
    const reading = this.#unfinished().catch((error: Error) => error.message);
    const late = new Promise<string>((resolve) => {
      setTimeout(() => resolve('the API does not answer'), describeMsMax).unref();
    });
    return `${await Promise.race([reading, late])}\n${this.output.slice(-lastWords)}`;
  }

  async #unfinished(): Promise<string> {
    const { body } = await this.api('GET', '/projects?limit=10');
    const lists = await Promise.all(
      body.projects.map(({ id }: { id: string }) => this.api('GET', `/projects/${id}/operations?limit=20`)),
    );
    const isOpen = ({ status }: { status: string }) => !ended.includes(status);
    return JSON.stringify(lists.flatMap((reply: Reply) => reply.body.operations.filter(isOpen)));
  }

  /** Postgres servers that run on this home's directories, found by their command lines. */
  async serverPids(match = ''): Promise<number[]> {
    const found = findProcesses(
      (words) =>
        words[0]?.endsWith('/postgres') === true &&
        words.some((word) => word.startsWith(`${this.home.path}/`)) &&
        words.some((word) => word.includes(match)),
    );
    // What a server forks has the words of the server until it gives itself a title.
    const parents = await Promise.all(found.map(parentOf));
    return found.filter((_, index) => !found.includes(parents[index] ?? 0));
  }

  /** Child processes of this program, by the name that they were started with. */
  async processPids(name: string): Promise<number[]> {
    // On Bun, options stand before it.
    const candidates = findProcesses((words) => {
      const index = words.findIndex((word) => word.endsWith('/child.js'));
      return index > 0 && words[index + 1] === name;
    });
    const parents = await Promise.all(candidates.map(parentOf));
    return candidates.filter((_, index) => parents[index] === this.pid);
  }
}

/** 0 for a process that has ended meanwhile. */
async function parentOf(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  return Number(stat.split(') ').at(-1)?.split(' ')[1] ?? 0);
}

/** Without waiting for each file: there are hundreds, they are short, and tests look again and again. */
function findProcesses(matches: (words: readonly string[]) => boolean): number[] {
  const pids = readdirSync('/proc').filter((entry) => /^\d+$/.test(entry));
  return pids.filter((pid) => matches(commandLine(pid))).map(Number);
}

function commandLine(pid: string): readonly string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
  } catch {
    // It has ended meanwhile.
    return [];
  }
}

/** Not harder: a server that is killed leaves its shared memory behind until the machine is started again. */
function quit(pid: number): void {
  try {
    process.kill(pid, 'SIGQUIT');
  } catch {
    // It has ended by itself.
  }
}
