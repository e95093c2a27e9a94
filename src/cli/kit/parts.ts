/** What `bin.ts` passes to the commands. The command line knows the API and no other part of Catnap. */
import type { Readable, Writable } from 'node:stream';
import type { ImportProgress, ImportReport, ImportRequest, MoveParts, RoleParts } from './copy-parts.ts';

export interface UpOptions {
  readonly processes: readonly string[];
  readonly stopComputes: boolean;
}

export interface Check {
  readonly name: string;
  readonly status: 'ok' | 'warn' | 'fail';
  readonly detail: string;
  readonly advice?: string;
}

export interface StoragePlan {
  readonly image: string;
  readonly mountPoint: string;
  readonly bytes: number;
  readonly movedBytes: number;
  readonly projects: number;
}

export interface StorageStatus {
  readonly method: 'reflink' | 'copy' | null;
  readonly path: string;
  readonly image: { readonly file: string; readonly bytes: number; readonly bytesOnDisk: number } | null;
  readonly isAway: boolean;
  readonly bytesUsed: number;
  readonly bytesFree: number;
  readonly branches:
    | readonly {
        readonly project: string;
        readonly branch: string;
        readonly bytes: number;
        readonly shared: number;
        readonly extents: number;
      }[]
    | null;
  readonly branchBytes: number;
  readonly branchBytesOnDisk: number;
  readonly historyBytes: number;
  readonly historyBytesOnDisk: number;
  readonly purgeBytes: number | null;
}

/** What `catnap storage` needs from the machine; failures are for people to read. */
export interface StorageParts {
  readonly plan: (bytes: number) => Promise<StoragePlan>;
  readonly create: (bytes: number, say: (line: string) => void) => Promise<void>;
  readonly status: () => Promise<StorageStatus>;
}

export interface RestoreRequest {
  /** URL of the store. */
  readonly from: string;
  readonly keyLine: string;
  /** A time or a position in the log; undefined for the newest. */
  readonly at: string | undefined;
  /** Branches that are restored at the same time. */
  readonly atOnce: number;
}

export interface LostSpan {
  readonly from: { readonly at: string; readonly lsn: string };
  readonly until: { readonly at: string; readonly lsn: string };
  readonly reason: string;
}

export interface RestoreReport {
  readonly startedAt: string;
  readonly finishedAt: string;
  readonly system: {
    readonly lastCommitAt: string | null;
    readonly until: string | null;
    readonly lost: LostSpan | null;
    readonly problems: readonly string[];
  };
  readonly restored: readonly {
    readonly projectId: string;
    readonly id: string;
    readonly name: string;
    readonly lastCommitAt: string | null;
    readonly until: string | null;
    readonly seconds: number;
    readonly lost: LostSpan | null;
    readonly problems: readonly string[];
  }[];
  readonly missing: readonly {
    readonly projectId: string;
    readonly id: string;
    readonly name: string;
    readonly reason: string;
  }[];
  readonly unknown: readonly { readonly projectId: string; readonly branchId: string; readonly historyId: string }[];
}

export interface ProjectRestoreRequest extends RestoreRequest {
  readonly project: {
    readonly projectId: string;
    /** With new ids, beside whatever is there. */
    readonly asNew: boolean;
    readonly organizationId: string | undefined;
  };
}

export interface ProjectRestoreReport extends RestoreReport {
  readonly project: { readonly id: string; readonly name: string };
  /** What did not come along, as sentences. */
  readonly notes: readonly string[];
}

/** What `catnap restore` needs from the machine; failures are for people to read. */
export interface RestoreParts {
  /** The key from the environment, if it is there. */
  readonly keyLine: string | undefined;
  readonly installation: (request: RestoreRequest, say: (line: string) => void) => Promise<RestoreReport>;
  /** One project, into the Catnap that runs. */
  readonly project: (request: ProjectRestoreRequest, say: (line: string) => void) => Promise<ProjectRestoreReport>;
}

export interface Verification {
  readonly at: string;
  readonly isOk: boolean;
  /** How many histories the store has. */
  readonly available: number;
  readonly verified: readonly {
    readonly projectId: string;
    readonly branchId: string;
    readonly until: string | null;
    readonly seconds: number;
    readonly check: { readonly method: string; readonly tables: number; readonly rows: number } | null;
    readonly problems: readonly string[];
  }[];
}

/** What `catnap backup` needs from the machine; failures are for people to read. */
export interface BackupParts {
  /** Undefined where no store was ever configured. */
  readonly key: () => Promise<string | undefined>;
  /** `sample` null for all histories. Records the result where Catnap runs. */
  readonly verify: (sample: number | null, say: (line: string) => void) => Promise<Verification>;
}

/** By the names of the command's options; those that are left out have their usual values. */
export interface ManifestOptions {
  readonly image: string;
  readonly host: string;
  readonly domain: string;
  /** By major. */
  readonly postgresImages: Readonly<Record<string, string>>;
  readonly region?: string;
  readonly namespace?: string;
  readonly computesNamespace?: string;
  readonly apis?: number;
  readonly workers?: number;
  readonly proxies?: number;
  readonly secret?: string;
  readonly tlsSecret?: string;
  readonly ingressTlsSecret?: string;
  readonly ingressClass?: string;
  readonly ingressNamespace?: string;
  readonly monitoringNamespace?: string;
  readonly operatorNamespace?: string;
  readonly storageClass?: string;
  readonly snapshotClass?: string;
  readonly volumeSize?: string;
  readonly apiServer?: string;
  readonly drainSeconds?: number;
}

export interface RenderedManifests {
  /** The first option that is wrong, and what it may be. */
  readonly wrong: { readonly name: string; readonly form: string } | null;
  /** A stream of YAML; empty when something is wrong. */
  readonly text: string;
}

export interface ServicePlan {
  readonly unitFile: string;
  readonly settingsFile: string;
  readonly text: string;
  readonly socket: { readonly file: string; readonly text: string } | null;
  readonly next: readonly string[];
  readonly notes: readonly string[];
}

/** What `catnap service` needs from the machine; failures are for people to read. */
export interface ServiceParts {
  /** `account` is whom it is to run as; undefined for the user who asks. `keepsPorts`: systemd keeps the ports open. */
  readonly plan: (account: string | undefined, keepsPorts: boolean) => Promise<ServicePlan>;
  readonly install: (plan: ServicePlan) => Promise<void>;
}

export interface EjectPlace {
  readonly projectId: string;
  readonly branchId: string;
  readonly folder: string;
  readonly account: string | undefined;
}

export interface Ejected {
  readonly folder: string;
  readonly program: string;
  readonly superuser: string;
  readonly password: string;
  readonly account: string | null;
}

/** What `catnap eject` needs from the machine; failures are for people to read. */
export interface EjectParts {
  readonly check: (place: EjectPlace) => Promise<void>;
  /** The compute is suspended. */
  readonly copy: (
    request: EjectPlace & { readonly endpointId: string; readonly pgVersion: number },
  ) => Promise<Ejected>;
}

/** What `catnap upgrade` needs from the machine; failures are for people to read. */
export interface UpgradeParts {
  readonly check: () => Promise<readonly Check[]>;
  /** `to` is a version or a commit; undefined for the program before. */
  readonly undo: (
    to: string | undefined,
    say: (line: string) => void,
  ) => Promise<{ readonly release: string; readonly migrations: readonly string[] }>;
}

export interface CliParts {
  readonly version: string;
  /** Node and the file that it was started with, to be started again. */
  readonly command: readonly [string, string];
  /** A text with commands between backticks as they are called here, such as `npx catnap up`. */
  readonly asCalledHere: (text: string) => string;
  /** For the psql that a command starts. */
  readonly psqlEnvironment: () => Readonly<Record<string, string | undefined>>;
  readonly home: string;
  /** The folder that the command was given in. */
  readonly folder: string;
  /** Where the API of this configuration listens, without a path. */
  readonly url: string;
  /** The configured key; without it the file in the data home is read. */
  readonly apiKey: string | undefined;
  /** Names of the processes that `up` can start. */
  readonly processNames: readonly string[];
  /** Starts Catnap and resolves with the exit code once it has stopped. */
  readonly up: (options: UpOptions) => Promise<number>;
  readonly doctor: () => Promise<readonly Check[]>;
  readonly storage: StorageParts;
  readonly kubernetesManifests: (options: ManifestOptions) => Promise<RenderedManifests>;
  readonly restore: RestoreParts;
  readonly backup: BackupParts;
  readonly service: ServiceParts;
  readonly eject: EjectParts;
  /** Copies a database between any two servers; failures are for people to read. */
  readonly importDatabase: (
    request: ImportRequest,
    report: (progress: ImportProgress) => void,
  ) => Promise<ImportReport>;
  readonly roles: RoleParts;
  readonly move: MoveParts;
  readonly upgrade: UpgradeParts;
  /** Makes a personal key without the API and leaves it in the data home, unless the one there works. */
  readonly recoverKey: () => Promise<{ readonly key: string; readonly isNew: boolean }>;
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: Writable;
  readonly stderr: Writable;
}
