/** Reads the schema of a branch's database: wakes its compute as a connection would, and dumps it from the server. */

import { updateLastActive } from '../db/endpoints.ts';
import type { ComputeAddress } from '../lib/model.ts';
import type { DumpedDatabase, SchemaSource } from './branch-schema.ts';
import type { Core } from './context.ts';
import type { Waker } from './wake.ts';

/** Returns the schema as SQL, from the server that answers at the address. */
export type DumpSchema = (address: ComputeAddress, source: DumpedDatabase) => Promise<string>;

export function makeSchemaReader(core: Core, { wake }: Waker, dump: DumpSchema) {
  return async (source: SchemaSource): Promise<string> => {
    const { route } = await wake(source.endpointId);
    // Reading counts as a use, or the compute could fall asleep meanwhile.
    await updateLastActive(core.database.sql, new Map([[source.endpointId, core.clock.now()]]));
    return dump(route, source);
  };
}
