/** What a server's roles and databases are to become, and what it took to get there. */

import type { ServerCatalog } from '../../lib/model.ts';

export interface DesiredRole {
  readonly name: string;
  /** SCRAM verifier, or null for a role that cannot log in. */
  readonly verifier: string | null;
  /** Without the right to make databases and roles. */
  readonly limited?: boolean;
  /** Its password was reset: whoever is logged in with the old one is logged out. */
  readonly endSessions?: boolean;
}

export interface DesiredDatabase {
  readonly name: string;
  /** Its current name in the server, when it must be renamed. */
  readonly renameFrom: string | null;
  readonly ownerName: string;
}

/** Changes inside a server, in order: databases to drop, so that names are free, roles, databases, roles to drop. */
export interface CatalogChange {
  readonly roles: readonly DesiredRole[];
  readonly databases: readonly DesiredDatabase[];
  readonly dropDatabases: readonly string[];
  readonly dropRoles: readonly string[];
  /** Roles made through the API take part in logical replication: theirs are REPLICATION and subscriptions. */
  readonly replication?: boolean;
}

/** Tenants' work that was ended because it was in the way of a change: sessions, and names of prepared transactions. */
export interface MadeWay {
  readonly sessions: number;
  readonly prepared: readonly string[];
}

export interface ConfiguredCatalog extends ServerCatalog {
  readonly madeWay?: MadeWay;
}
