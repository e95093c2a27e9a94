/**
 * What the parent and its child processes send each other, by kind. The bodies of `permits` and `host` belong to
 * other rooms, which check them: a proxy handles unauthenticated connections, and the parent has rights to lose.
 */
import type { CloneMethod, TemporaryDiskEnforcement } from '../../compute/interface/driver-host.ts';
import type { DatabaseOptions } from '../../db/client.ts';
import type { Config } from '../../lib/config.ts';
import type { CertificatePair } from '../../machine/certificate-source.ts';
import { type Channel, type ChannelEnd, openChannel } from './channel.ts';

export const processNames = ['api', 'worker', 'proxy'] as const;
export type ProcessName = (typeof processNames)[number];

/** Everything a child needs, so that it reads no file and no environment: it has given up its rights by then. */
export interface ChildInit {
  readonly name: ProcessName;
  readonly config: Config;
  readonly database: DatabaseOptions;
  /** Base64 of the key that seals secrets. */
  readonly secretKey: string;
  /** What Catnap proves itself with to the embedded auth provider, as the integration client `catnap`. */
  readonly stackSecret: string;
  readonly certificate: CertificatePair;
  /** Which of the proxies it is, from 0 on; 0 for the other processes. */
  readonly proxyNumber: number;
  /** The listening socket that the proxies share, as the process has inherited it; without one it makes its own. */
  readonly portFd: number | null;
  /** Where each proxy takes requests for SQL over HTTP from the API, and cancel requests from the others. */
  readonly proxySockets: readonly string[];
  readonly version: string;
  /** The build that a server would be started from now, by major. */
  readonly releases: Readonly<Record<number, string>>;
  readonly temporaryDiskEnforcement: TemporaryDiskEnforcement;
  /** How branches are made where the data is; null where that could not be tried. */
  readonly storageMethod: CloneMethod | null;
  /** Null where computes are held to their sizes; otherwise why they are not. */
  readonly limitsProblem: string | null;
}

export interface ToChild {
  readonly init: ChildInit;
  readonly stop: null;
  /** In place of the one before; may come ahead of `init`. */
  readonly certificate: CertificatePair;
  /** An answer of the broker of permits, for a proxy. */
  readonly permits: unknown;
  /** A reply of the privileged host. */
  readonly host: unknown;
}

export interface ToParent {
  readonly ready: null;
  /** The reason why it cannot start, where a restart would not help (a port is taken, say). */
  readonly failed: string;
  /** A proxy's request to the broker of permits. */
  readonly permits: unknown;
  /** A call of the privileged host. */
  readonly host: unknown;
}

export type ParentEnd = Channel<ToChild, ToParent>;
export type ChildEnd = Channel<ToParent, ToChild>;

export const openParentEnd = (child: ChannelEnd): ParentEnd =>
  openChannel(child, ['ready', 'failed', 'permits', 'host']);

export const openChildEnd = (own: ChannelEnd): ChildEnd =>
  openChannel(own, ['init', 'stop', 'certificate', 'permits', 'host']);
