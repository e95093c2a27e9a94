/** What the API process hands to its routes and plugins (`processes/api.ts`): they find nothing by themselves. */
import type { Registry } from 'prom-client';
import type { Providers } from '../../auth-client/providers.ts';
import type { AuthProviderParts } from '../../auth-provider/core/parts.ts';
import type { SchemaSource } from '../../core/branch-schema.ts';
import type { Core } from '../../core/context.ts';
import type { AwaitOperation } from '../../core/operation-wait.ts';
import type { ReadVerifiers } from '../../core/role-verifiers.ts';
import type { SessionControl } from '../../core/session.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Config } from '../../lib/config.ts';
import type { EndpointId, ProjectId } from '../../lib/ids.ts';
import type { Logger } from '../../lib/log.ts';
import type { ExtensionFacts, LogEntry } from '../../lib/model.ts';
import type { AnswerAgent } from './agents.ts';
import type { ConsoleFiles } from './console-files.ts';

/** The settings, and what the parent found out about the machine. */
export interface ApiConfig extends Config {
  /** How the limit on temporary files is enforced: by a disk for each compute, or by Postgres for each session. */
  readonly temporaryDiskEnforcement: 'disk' | 'session';
  /** How branches are made: sharing blocks, or by a full copy; null where that is not known. */
  readonly storageMethod: 'reflink' | 'copy' | null;
  /** Whether computes are held to their sizes on this machine. */
  readonly limitsEnforced: boolean;
  /** Why SQL in computes reaches what the machine reaches; null where it is kept from that. */
  readonly networkProblem: string | null;
  /** Why no project can be given outbound connections; null where one can. */
  readonly outsideProblem: string | null;
  /** What cannot be had where computes run, and why. */
  readonly cannot: Readonly<Partial<Record<'replicas' | 'empty_copies', string>>>;
  /** The build that a server would be started from now, by major. */
  readonly releases: Readonly<Record<number, string>>;
}

export interface ApiParts {
  readonly core: Core;
  readonly config: ApiConfig;
  readonly log: Logger;
  readonly clock: Clock;
  readonly metrics: Registry;
  /** The built console, read while the process could still read it. */
  readonly consoleFiles: ConsoleFiles;
  /** Version of the program, for the pages and the OpenAPI document. */
  readonly version: string;
  /** Asks Postgres of a major whether settings are good: null, or what is wrong with them. */
  readonly checkSettings: (pgVersion: number, settings: Readonly<Record<string, string>>) => Promise<string | null>;
  /** Which extensions owners can create in servers of a major, and which not. */
  readonly listExtensions: (pgVersion: number) => Promise<ExtensionFacts>;
  /** The last entries of a compute's log. Whether the caller may read it is asked before. */
  readonly readLog: (
    ref: { readonly projectId: ProjectId; readonly endpointId: EndpointId },
    limit: number,
  ) => Promise<readonly LogEntry[]>;
  /** Asks a server for its sessions, or stops one. Whether the caller may is asked before. */
  readonly sessions: SessionControl;
  /** Asks a server for the verifiers of its roles' passwords. Whether the caller may is asked before. */
  readonly readVerifiers: ReadVerifiers;
  /** The embedded auth provider, which is served under `/stack`. */
  readonly authProvider: AuthProviderParts;
  /** Where the proxies take requests for SQL over HTTP. */
  readonly proxySockets: readonly string[];
  /** Aborted when the process begins to stop: what it has begun is finished, and nobody should send it more. */
  readonly draining?: AbortSignal;
  /** For the few replies that are the result of an operation. */
  readonly awaitOperation: AwaitOperation;
  readonly providers: Providers;
  /** Wakes the compute and reads the schema of a database as SQL. */
  readonly dumpSchema: (source: SchemaSource) => Promise<string>;
  /** Answers what agents send to `/mcp`; loads what it needs for that with the first message. */
  readonly answerAgent: AnswerAgent;
  /** Called at each use of a key, and must not block; core's `KeyUseRecorder` is one. */
  readonly keyUses: { record(keyId: number, from: string): void };
}
