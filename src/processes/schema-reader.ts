/** Reads schemas for the API: wakes the compute as a connection would, and has its server dumped. */
import { dumpSchema } from '../compute/schema-dump/dump.ts';
import type { SchemaSource } from '../core/branch-schema.ts';
import { recordActivity } from '../core/connection.ts';
import type { Core } from '../core/context.ts';
import type { Logger } from '../lib/log.ts';
import { createControlPlane } from './control-plane.ts';

export interface SchemaReader {
  readonly read: (source: SchemaSource) => Promise<string>;
  close(): Promise<void>;
}

export async function createSchemaReader(core: Core, log: Logger): Promise<SchemaReader> {
  const controlPlane = await createControlPlane(core, log);
  const { pgBin, programPath } = core.config;
  return {
    read: async ({ endpointId, pgVersion, database, adminSecret }) => {
      const address = await controlPlane.wake(endpointId);
      // It counts as a use, or the compute could fall asleep meanwhile.
      await recordActivity(core.database.sql, new Map([[endpointId, core.clock.now()]]));
      return dumpSchema({ address, adminSecret, database, pgVersion, programPath, binDirectory: pgBin[pgVersion] });
    },
    close: () => controlPlane.close(),
  };
}
