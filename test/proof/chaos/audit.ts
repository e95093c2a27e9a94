/** What must hold after a fault: rows, servers, and that the API shows what the machine has. */
import { eventually } from '../../helpers/eventually.ts';
import { compareRows, problemCount } from './row-log.ts';
import { readWritten, type Tenant, type World } from './world.ts';

/** How far back a replica is compared. */
const replicaRows = 500;

/** Rows that each writer knows of; those found before are left out unless `all`. */
export async function auditRows(world: World, all: boolean): Promise<number> {
  let verified = 0;
  for (const tenant of world.tenants) verified += await auditTenant(world, tenant, all);
  return verified;
}

async function auditTenant(world: World, tenant: Tenant, all: boolean): Promise<number> {
  const expected = tenant.writers.map((writer) => {
    const above = all ? 0 : writer.checkedUpTo;
    return { writer, above, numbers: writer.log.acknowledgedSoFar(above) };
  });
  const above = new Map(expected.map((one) => [one.writer.name, one.above]));
  const rows = await eventually(() => readWritten(tenant.uri, above));
  let verified = 0;
  for (const { writer, numbers } of expected) {
    const found = rows.filter((row) => row.writer === writer.name);
    const problems = compareRows(numbers, found, writer.log.last);
    world.rowsLost += problems.lost.length;
    world.rowsDoubled += problems.doubled.length;
    if (problemCount(problems) > 0) world.violations.push(`rows of ${writer.name}: ${JSON.stringify(problems)}`);
    writer.checkedUpTo = Math.max(writer.checkedUpTo, ...numbers.slice(-1));
    verified += numbers.length;
  }
  return verified;
}

/** Never two, not even for a moment. */
export function auditServers(world: World): void {
  const seen = new Map<string, number>();
  for (const { dataDirectory, pid } of world.processes().servers()) {
    const other = seen.get(dataDirectory);
    if (other !== undefined) world.violations.push(`${other} and ${pid} serve ${dataDirectory}`);
    seen.set(dataDirectory, pid);
  }
}

/** When every operation has ended, a compute that is active runs, and one that is idle does not. */
export async function auditStates(world: World): Promise<void> {
  for (const projectId of await world.projectIds()) {
    await eventually(async () => {
      const endpoints = await world.endpointsOf(projectId);
      const running = new Set(
        world
          .processes()
          .computes()
          .map(({ endpointId }) => endpointId),
      );
      const wrong = endpoints.filter(({ id, current_state }) => (current_state === 'active') !== running.has(id));
      if (wrong.length > 0) throw new Error(`the API and the process table differ: ${JSON.stringify(wrong)}`);
    });
  }
}

/** A read replica catches up with its primary, and shows nothing that the primary does not have. */
export async function auditReplicas(world: World): Promise<void> {
  for (const { projectId, branchId, endpointId, uri, writers } of world.tenants) {
    const endpoints = await eventually(() => world.endpointsOf(projectId));
    const replicas = endpoints.filter(({ type, branch_id }) => type === 'read_only' && branch_id === branchId);
    for (const { id } of replicas) {
      const above = new Map(writers.map(({ name, checkedUpTo }) => [name, Math.max(0, checkedUpTo - replicaRows)]));
      const expected = new Map(writers.map(({ name, log }) => [name, log.acknowledgedSoFar(above.get(name))]));
      const shown = await eventually(async () => {
        const rows = await readWritten(uri.replaceAll(endpointId, id), above);
        const found = new Set(rows.map(({ writer, number }) => `${writer} ${number}`));
        const missing = [...expected].flatMap(([name, numbers]) =>
          numbers.filter((number) => !found.has(`${name} ${number}`)).map((number) => `${name} ${number}`),
        );
        if (missing.length > 0) throw new Error(`replica ${id} does not have ${missing.slice(0, 5).join(', ')}`);
        return found;
      });
      const ofPrimary = await eventually(() => readWritten(uri, above));
      for (const { writer, number } of ofPrimary) shown.delete(`${writer} ${number}`);
      if (shown.size > 0) world.violations.push(`replica ${id} showed what its primary does not have: ${[...shown]}`);
    }
  }
}
