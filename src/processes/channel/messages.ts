/**
 * What the parent and its child processes send each other, by kind. The bodies of `permits` and `host` belong to other
 * rooms, which check them: a proxy handles unauthenticated connections, and the parent has privileges.
 */
import type { CloneMethod, ReadyServer, TemporaryDiskEnforcement } from '../../compute/interface/driver-host.ts';
import type { DatabaseOptions } from '../../db/client.ts';
import type { Config } from '../../lib/config.ts';
import type { CertificatePair } from '../../machine/certificate-source.ts';
import { type Channel, type ChannelEnd, openChannel } from './channel.ts';

export const processNames = ['api', 'worker', 'proxy', 'backup'] as const;
export type ProcessName = (typeof processNames)[number];

/** Everything a child needs, so that it reads no file and no environment: it has dropped its privileges by then. */
export interface ChildInit {
  readonly name: ProcessName;
  readonly config: Config;
  readonly database: DatabaseOptions;
  /** Base64 of the key that seals secrets. */
  readonly secretKey: string;
  /** Catnap's credential at the embedded auth provider, as the integration client `catnap`. */
  readonly stackSecret: string;
  readonly certificate: CertificatePair;
  /** Its number among the processes of its name, from 0 on. */
  readonly number: number;
  /** By it the leases of a worker are known; the process that takes its place has the same. */
  readonly workerId: string;
  /** Whether no worker but those of this parent can be working on the system database. */
  readonly worksAlone: boolean;
  /** The socket that processes of its name share, as the process has inherited it; without one it makes its own. */
  readonly portFd: number | null;
  /** Where each proxy takes requests for SQL over HTTP from the API, and cancel requests from the other proxies. */
  readonly proxySockets: readonly string[];
  readonly version: string;
  /** The build that a server would now start from, by major. */
  readonly releases: Readonly<Record<number, string>>;
  readonly temporaryDiskEnforcement: TemporaryDiskEnforcement;
  /** How branches are copied where the data is; null where that could not be tried. */
  readonly storageMethod: CloneMethod | null;
  /** Null where the sizes of computes are enforced; otherwise why they are not. */
  readonly limitsProblem: string | null;
  /** Null where servers have networks of their own; otherwise why they have the machine's. */
  readonly networkProblem: string | null;
  /** Null where a project can be given outbound connections; otherwise why it cannot. */
  readonly outsideProblem: string | null;
  /** For the process that uploads; null for the others. */
  readonly backup: BackupInit | null;
}

export interface BackupInit {
  /** The line of the key file. */
  readonly key: string;
  readonly installationId: string;
  readonly historyDirectory: string;
  /** Key files of the data home, their contents in base64. */
  readonly homeFiles: readonly { readonly name: string; readonly content: string }[];
}

export interface ToChild {
  readonly init: ChildInit;
  readonly stop: null;
  /** Replaces the previous certificate; may arrive before `init`. */
  readonly certificate: CertificatePair;
  /** An answer of the permit broker, for a proxy. */
  readonly permits: unknown;
  /** For a proxy: a server that its clients may wait for has come up, and its route is about to open. */
  readonly server: ReadyServer;
  /** A reply of the privileged host. */
  readonly host: unknown;
}

export interface ToParent {
  readonly ready: null;
  /** Why it cannot start, where a restart would not help (a port is taken, for example). */
  readonly failed: string;
  /** A proxy's request to the permit broker. */
  readonly permits: unknown;
  /** A call to the privileged host. */
  readonly host: unknown;
}

export type ParentEnd = Channel<ToChild, ToParent>;
export type ChildEnd = Channel<ToParent, ToChild>;

export const openParentEnd = (child: ChannelEnd): ParentEnd =>
  openChannel(child, ['ready', 'failed', 'permits', 'host']);

export const openChildEnd = (own: ChannelEnd): ChildEnd =>
  openChannel(own, ['init', 'stop', 'certificate', 'permits', 'server', 'host']);
