/**
 * Which network a tenant's server has. It talks to Catnap through files alone, so it needs none: as root every server
 * runs in an empty namespace, and SQL (`postgres_fdw`, a subscription) reaches nothing, not even ports of this machine.
 * A project may ask for the outside. Without root there are no namespaces, and servers have the machine's network.
 */
import type { Duplex } from 'node:stream';
import { runProgram } from '../../../../lib/run-program.ts';
import type { HostFacts } from '../../../interface/driver-host.ts';
import { makeNamespace } from './namespace.ts';
import { makeOutsideNetwork } from './outside.ts';

/** What a server inherits, and enters before it becomes Postgres. */
export interface ServerNetwork {
  readonly fd: number;
  /** Kept open by the server for as long as it lives. */
  readonly lifeline: Duplex | null;
  /** Call it when the server has begun, or will not. */
  close(): void;
}

type NetworkFacts = Pick<HostFacts, 'networkProblem' | 'outsideProblem'>;

export class Networks {
  readonly #isRoot: boolean;
  readonly #allowed: readonly string[];
  #facts: Promise<NetworkFacts> | undefined;
  #empty: Promise<number> | undefined;

  constructor({ isRoot, allowed }: { readonly isRoot: boolean; readonly allowed: readonly string[] }) {
    this.#isRoot = isRoot;
    this.#allowed = allowed;
  }

  /** Found out once, by trying. */
  facts(): Promise<NetworkFacts> {
    this.#facts ??= this.#findOut();
    return this.#facts;
  }

  async #findOut(): Promise<NetworkFacts> {
    const networkProblem = this.#isRoot ? await this.#whyNoNamespace() : 'Catnap does not run as root';
    if (networkProblem !== null) return { networkProblem, outsideProblem: null };
    for (const [program, question, packageName] of [
      ['slirp4netns', '--version', 'slirp4netns'],
      ['ip', '-V', 'iproute2'],
    ] as const) {
      const missing = `${program} is not installed on the machine (on Debian: apt-get install ${packageName})`;
      if (!(await answers(program, question))) return { networkProblem, outsideProblem: missing };
    }
    return { networkProblem, outsideProblem: null };
  }

  async #whyNoNamespace(): Promise<string | null> {
    if (!(await answers('nsenter', '--version'))) return 'nsenter is not installed on the machine (util-linux)';
    try {
      await this.#emptyNetwork();
      return null;
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  }

  /** One for all: nothing can listen where every device is down, so servers do not find each other in it either. */
  #emptyNetwork(): Promise<number> {
    this.#empty ??= makeNamespace().then((namespace) => {
      namespace.release();
      return namespace.fd;
    });
    return this.#empty;
  }

  /** Null where servers have the machine's. */
  async open(kind: 'none' | 'outside'): Promise<ServerNetwork | null> {
    const { networkProblem, outsideProblem } = await this.facts();
    if (networkProblem !== null) return null;
    if (kind === 'none') return { fd: await this.#emptyNetwork(), lifeline: null, close: () => undefined };
    if (outsideProblem !== null) throw new Error(`the compute cannot be given outbound connections: ${outsideProblem}`);
    return makeOutsideNetwork(this.#allowed);
  }
}

const answers = (program: string, question: string) =>
  runProgram(program, [question]).then(
    () => true,
    () => false,
  );
