/** What the parent and its role processes say to each other over Node's own channel. */

import type { CloneMethod, TemporaryDiskEnforcement } from '../../compute/interface/driver-host.ts';
import type { DatabaseOptions } from '../../db/client.ts';
import type { Config } from '../../lib/config.ts';
import type { CertificatePair } from '../../machine/certificate-source.ts';

export const roleNames = ['api', 'worker', 'proxy'] as const;
export type RoleName = (typeof roleNames)[number];

/** Everything a role needs, so that it reads no file and no environment: it has given up its rights by then. */
export interface RoleInit {
  readonly kind: 'init';
  readonly role: RoleName;
  readonly config: Config;
  readonly database: DatabaseOptions;
  /** Base64 of the key that seals secrets. */
  readonly secretKey: string;
  /** What Catnap proves itself with to the embedded auth provider, as the integration client `catnap`. */
  readonly stackSecret: string;
  readonly certificate: CertificatePair;
  /** Which of the proxies it is, from 0 on; 0 for the other roles. */
  readonly proxyNumber: number;
  /** The listening socket that the proxies share, as the process has inherited it; without one it makes its own. */
  readonly portFd: number | null;
  /** Where each proxy takes requests for SQL over HTTP from the API, and cancel requests from the others. */
  readonly proxySockets: readonly string[];
  readonly version: string;
  /** The build that a server would be started from now, by major. */
  readonly releases: Readonly<Record<number, string>>;
  readonly temporaryDiskEnforcement: TemporaryDiskEnforcement;
  /** How branches are made where the data are; null where that could not be tried. */
  readonly storageMethod: CloneMethod | null;
  /** Null where computes are held to their sizes; otherwise why they are not. */
  readonly limitsProblem: string | null;
}

export type ParentMessage =
  | RoleInit
  | { readonly kind: 'stop' }
  /** In place of the one before; may come ahead of `init`. */
  | { readonly kind: 'certificate'; readonly certificate: RoleInit['certificate'] };

export type RoleMessage =
  | { readonly kind: 'ready' }
  /** It cannot start, and a restart would not help (a port is taken, say). */
  | { readonly kind: 'failed'; readonly reason: string };

export function isParentMessage(message: unknown): message is ParentMessage {
  return typeof message === 'object' && message !== null && 'kind' in message;
}

export function isRoleMessage(message: unknown): message is RoleMessage {
  return typeof message === 'object' && message !== null && 'kind' in message;
}
