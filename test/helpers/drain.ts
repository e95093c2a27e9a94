/** Runs the operation queue dry, without waiting for retries or for leases to run out. */
import { FakeDriver } from '../../src/compute/fake/fake-driver.ts';
import type { ComputeDriver } from '../../src/compute/interface/driver.ts';
import type { Core } from '../../src/core/context.ts';
import type { DumpSchema } from '../../src/core/schema-reader.ts';
import { createLogger } from '../../src/lib/log.ts';
import { jobRegistry } from '../../src/operations/registry.ts';
import { OperationRunner } from '../../src/operations/runner.ts';
import type { Job } from '../../src/operations/step.ts';
import { testProviders } from './providers.ts';

const turnsMax = 500;
const log = createLogger({ level: 'silent', process: 'test' });

export async function drain(
  core: Core,
  driver: ComputeDriver,
  registry: Readonly<Record<string, Job>> = jobRegistry,
  providers = testProviders(),
): Promise<void> {
  const dumpSchema = driver instanceof FakeDriver ? fakeDump(driver) : undefined;
  const more = { registry, providers, ...(dumpSchema && { dumpSchema }) };
  const runner = new OperationRunner({ core, driver, log, concurrency: 1, ...more });
  const { sql } = core.database;
  for (let turns = 0; turns < turnsMax; turns++) {
    if (await runner.runNext()) continue;
    const { count: hurried } = await sql`update operations set run_at = now() where run_at > now()`;
    if (hurried > 0) continue;
    const [left] = await sql`
      select 1 from operations where status in ('scheduling', 'running', 'failed', 'cancelling')`;
    if (left === undefined) return;
    await sql`update operations set lease_until = now() - interval '1 s' where lease is not null`;
  }
  throw new Error('the queue does not run dry');
}

/** The fake has no tables: its roles stand in for them. */
function fakeDump({ computes, branches }: FakeDriver): DumpSchema {
  return async (address, { database }) => {
    const compute = [...computes.values()].find(
      ({ ref }) => 'path' in address && address.path.endsWith(ref.endpointId),
    );
    const roles = [...(branches.get(compute?.ref.branchId ?? '')?.roles.keys() ?? [])];
    return [`-- ${database}`, ...roles.toSorted().map((name) => `CREATE TABLE ${name} ();`), ''].join('\n');
  };
}
