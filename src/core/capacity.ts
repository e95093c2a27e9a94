/**
 * Admission: if the operator states the capacity of the installation, only computes whose smallest sizes fit in it
 * start. Without a stated capacity every compute starts, and they share what there is.
 */
import { lockCapacity, selectHeldCapacity, updateReservedCu } from '../db/sizes.ts';
import type { EndpointId } from '../lib/ids.ts';
import type { Core, Scope } from './context.ts';

/** Why a compute of this smallest size cannot start, with the numbers; null when it can. */
export async function whyNoRoom(scope: Scope, id: EndpointId, cu: number): Promise<string | null> {
  const { capacityCu } = scope.config;
  if (capacityCu === undefined) return null;
  const held = await selectHeldCapacity(scope.sql, id);
  if (held.cu + cu <= capacityCu + 1e-9) return null;
  return (
    `no room for another compute: it needs ${cu} CU, and those that run (${held.computes}) hold ${held.cu} of the ` +
    `${capacityCu} CU of this installation (CATNAP_CAPACITY_CU)`
  );
}

/** Reserves capacity, which the compute keeps until it sleeps, or returns why there is none. */
export async function takeRoom(core: Core, id: EndpointId, cu: number): Promise<string | null> {
  if (core.config.capacityCu === undefined) return null;
  return core.database.transaction(async (tx) => {
    await lockCapacity(tx);
    const problem = await whyNoRoom({ ...core, sql: tx }, id, cu);
    if (problem === null) await updateReservedCu(tx, id, cu);
    return problem;
  });
}
