/** What `main.ts` hands to the API. Nothing in here is looked up elsewhere. */
import type { Registry } from 'prom-client';
import type { Clock } from '../clock.ts';
import type { Config } from '../config.ts';
import type { Core } from '../core/context.ts';
import type { Logger } from '../log.ts';

export interface ApiParts {
  readonly core: Core;
  readonly config: Config;
  readonly log: Logger;
  readonly clock: Clock;
  readonly metrics: Registry;
  /** Of the program, for the pages and the OpenAPI document. */
  readonly version: string;
  /** Told about each use of a key, and must not wait; core's `KeyUseRecorder` is one. */
  readonly keyUses: { record(keyId: number, from: string): void };
}
