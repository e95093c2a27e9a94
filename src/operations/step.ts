/**
 * What a step of an operation is and what it may return. A step runs with no transaction open, may be run twice, and
 * returns what comes next; the runner writes that in one transaction, and only while it still holds the lease.
 */

import type { Providers } from '../auth-client/providers.ts';
import { isNotSupported } from '../compute/interface/abilities.ts';
import {
  type ComputeDriver,
  type ComputeObservation,
  type ComputeRef,
  type ComputeSample,
  NoSuchMomentError,
  type SettledServer,
} from '../compute/interface/driver.ts';
import { ServerRefusalError } from '../compute/interface/refusal.ts';
import type { PendingCatalog } from '../core/catalog.ts';
import type { Core } from '../core/context.ts';
import { isRemoval, type JobName } from '../core/operation.ts';
import type { DumpSchema } from '../core/schema-reader.ts';
import type { UsersSyncWork } from '../core/users-sync.ts';
import type { BranchRow } from '../db/branches.ts';
import type { Tx } from '../db/client.ts';
import type { EndpointRow } from '../db/endpoints.ts';
import type { OperationRow, OperationState } from '../db/operations.ts';
import type { ProjectRow } from '../db/projects.ts';
import { CatnapError } from '../lib/errors.ts';
import type { Logger } from '../lib/log.ts';
import type { ServerCatalog, SizeRange } from '../lib/model.ts';
import type { AtOnce, Raise } from './wake/quick-way.ts';

export interface StepContext {
  readonly operation: OperationRow;
  readonly core: Core;
  readonly driver: ComputeDriver;
  readonly providers: Providers;
  readonly dumpSchema: DumpSchema;
  readonly log: Logger;
  readonly memory: StepMemory;
}

/** The rows that an operation on a compute works with, and the driver's name for it. */
export interface ComputeTarget {
  readonly project: ProjectRow;
  readonly branch: BranchRow;
  readonly endpoint: EndpointRow;
  /** The size that the plan leaves it; the row keeps the one that was asked for. */
  readonly size: SizeRange;
  /** Of a replica: the settings that its primary has, runs with, or will run with. */
  readonly primarySettings: Readonly<Record<string, string>>;
  readonly ref: ComputeRef;
}

/**
 * What a step has found out for later steps, so that they do not ask again. It lives as long as one worker keeps the
 * operation: a step must be able to work without it.
 */
export interface StepMemory {
  /** What was read together with the claim: for the first step alone, since steps change these rows. */
  atClaim?: ComputeTarget;
  compute?: ComputeTarget;
  /** The server that this operation started, when it first answered. */
  seen?: ComputeObservation;
  work?: StartWork;
  /** What the server holds after roles and databases were changed, or after that was tried. */
  held?: ServerCatalog;
  /** What the server held that this operation is about to stop; recorded already. */
  settled?: SettledServer;
  /** What that server has used; null when nobody could tell. */
  used?: ComputeSample | null;
}

/** What a start has to do on the server before its route opens. */
export interface StartWork {
  readonly catalog: PendingCatalog;
  readonly users: UsersSyncWork;
}

/** Runs inside the transaction that records the outcome; what it returns, if anything, is merged into the state. */
export type Write = (tx: Tx) => Promise<OperationState | undefined>;

export type StepResult =
  | { readonly kind: 'goto'; readonly step: string; readonly write: Write | null }
  | Raise
  | { readonly kind: 'wait'; readonly waitMs: number }
  | {
      readonly kind: 'done';
      readonly write: Write | null;
      readonly note: string | null;
      /** Tried instead of the write, which still runs if this returns false. */
      readonly atOnce: AtOnce | null;
    }
  /** There was nothing left to do. */
  | { readonly kind: 'skip'; readonly reason: string }
  /** It cannot succeed, and trying again would not help. */
  | { readonly kind: 'abandon'; readonly reason: string };

export type Step = (context: StepContext) => Promise<StepResult>;

export interface Job {
  readonly steps: Readonly<Record<string, Step>>;
  /** Leaves a truthful state behind when the operation ends in `error` or is cancelled. Asks nothing of the driver. */
  readonly giveUp: (tx: Tx, context: StepContext, reason: string) => Promise<void>;
}

export const goto = (step: string, write: Write | null = null): StepResult => ({ kind: 'goto', step, write });
export const wait = (waitMs: number): StepResult => ({ kind: 'wait', waitMs });
export const done = (
  write: Write | null = null,
  note: string | null = null,
  atOnce: AtOnce | null = null,
): StepResult => ({ kind: 'done', write, note, atOnce });
export const skip = (reason: string): StepResult => ({ kind: 'skip', reason });
export const abandon = (reason: string): StepResult => ({ kind: 'abandon', reason });

/**
 * A copy that found no room is not tried again: each attempt would fill the disk that others write to. Nor is one of a
 * moment that the history cannot give, nor one that this driver does not make.
 */
export async function abandonIfHopeless(copy: () => Promise<StepResult>): Promise<StepResult> {
  try {
    return await copy();
  } catch (error) {
    const isHopeless =
      error instanceof NoSuchMomentError ||
      isNotSupported(error) ||
      (error instanceof CatnapError && error.kind === 'disk_full');
    if (isHopeless) return abandon(error.message);
    throw error;
  }
}

/** Trying again would not help. A removal goes on all the same: giving up would leave something behind. */
export const isFinal = (job: string, error: unknown) =>
  (error instanceof ServerRefusalError || isNotSupported(error)) && !isRemoval(job as JobName);

/** A failure after which the next try must begin at an earlier step. */
export class StepFailure extends Error {
  readonly retryFrom: string;

  constructor(message: string, retryFrom: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'StepFailure';
    this.retryFrom = retryFrom;
  }
}

export const nothingToUndo: Job['giveUp'] = async () => {};
