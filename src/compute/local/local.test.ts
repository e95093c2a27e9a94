import { describe, expect, test } from 'vitest';
import { makeLocalSubject } from '../../../test/helpers/local-subject.ts';
import { newBranchId, newEndpointId, newSecret } from '../../lib/ids.ts';
import { buildVerifier } from '../../lib/scram-verifier.ts';
import { limits, tempDiskBytes, untilRunning } from '../contract/bench.ts';
import { describeDriverContract } from '../contract/contract.ts';

describeDriverContract('the local driver on Postgres 17', () => makeLocalSubject(17));

describe('the local driver', () => {
  test('says why a server does not start, and starts it once the reason is gone', async () => {
    const subject = await makeLocalSubject(17);
    const { driver } = subject;
    const ref = { ...subject.newTenant(), branchId: newBranchId(), endpointId: newEndpointId() };
    try {
      await driver.createBranch({ ...ref, pgVersion: 17, source: { kind: 'template' } });
      const spec = { ...ref, generation: 1, pgVersion: 17, tempDiskBytes, limits, adminSecret: newSecret() };
      const wrong = driver.start({ ...spec, settings: { no_such_setting: 'on' } });
      await expect(wrong).rejects.toThrow(/postgres did not start: .*unrecognized.*no_such_setting/);
      expect(await driver.observe(ref)).toMatchObject({ state: 'absent', pid: null });
      await driver.start({ ...spec, settings: {} });
      await untilRunning(driver, ref);
    } finally {
      await driver.removeProject(ref);
      await subject.close();
    }
  });

  test('can be prepared again, and after a restart', async () => {
    const subject = await makeLocalSubject(17);
    try {
      const host = subject.openHost();
      await host.prepare(17, () => undefined);
      const lines: string[] = [];
      await host.prepare(17, (line) => lines.push(line));
      expect(lines).toEqual([]);
    } finally {
      await subject.close();
    }
  });

  test('takes the uid of a project from nobody but the project', async () => {
    const subject = await makeLocalSubject(17);
    const tenant = subject.newTenant();
    const spec = { ...tenant, branchId: newBranchId(), pgVersion: 17, source: { kind: 'template' } } as const;
    try {
      await subject.driver.createBranch(spec);
      const { tenantUid } = tenant;
      const others = tenantUid === null ? [1000, 0] : [null, 0, 65_534, tenantUid + 1];
      for (const uid of others) {
        const theirs = { ...spec, tenantUid: uid };
        await expect(subject.driver.createBranch(theirs)).rejects.toThrow(/uid/);
        await expect(subject.driver.removeProject(theirs)).rejects.toThrow(/uid/);
      }
    } finally {
      await subject.driver.removeProject(tenant);
      await subject.close();
    }
  });
});

describe('the local driver on Postgres 18', () => {
  test('makes, starts, configures, naps, wakes and removes', async () => {
    const subject = await makeLocalSubject(18);
    const { driver } = subject;
    const ref = { ...subject.newTenant(), branchId: newBranchId(), endpointId: newEndpointId() };
    try {
      await driver.createBranch({ ...ref, pgVersion: 18, source: { kind: 'template' } });
      const spec = { ...ref, pgVersion: 18, settings: {}, tempDiskBytes, limits, adminSecret: newSecret() };
      await driver.start({ ...spec, generation: 1 });
      await untilRunning(driver, ref);
      await driver.configure(ref, {
        roles: [{ name: 'owner', verifier: buildVerifier('pw') }],
        databases: [{ name: 'app', renameFrom: null, ownerName: 'owner' }],
        dropDatabases: [],
        dropRoles: [],
      });
      await driver.suspend(ref, 1);
      await driver.start({ ...spec, generation: 2 });
      const { address } = await untilRunning(driver, ref);
      const login = { username: 'owner', password: 'pw', database: 'app' };
      const [row] = address ? await subject.query(address, login, 'SHOW server_version') : [];
      expect(row?.server_version).toMatch(/^18\./);
    } finally {
      await driver.removeProject(ref);
      expect(await subject.leftovers()).toEqual([]);
      await subject.close();
    }
  });
});
