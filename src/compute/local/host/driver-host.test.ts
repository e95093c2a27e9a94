import { afterAll, describe, expect, test } from 'vitest';
import { makeChannelPair } from '../../../../test/helpers/channel-pair.ts';
import { makeTempHome } from '../../../../test/helpers/temp-home.ts';
import { createLogger } from '../../../lib/log.ts';
import { ensureHome } from '../../../machine/home.ts';
import type { DriverAccess } from '../../interface/driver-host.ts';
import { openDriverHost } from '../../open-driver-host.ts';
import { hostMethods } from '../channel/host-calls.ts';
import { remoteHost } from '../channel/remote.ts';

const home = await makeTempHome();
const log = createLogger({ level: 'silent', process: 'test' });
const host = await openDriverHost(home.config, await ensureHome(home.config), log);

afterAll(async () => {
  await host.close();
  await home.remove();
});

/** The calls that a child with this access may make, whatever their result. */
async function answered(access: DriverAccess): Promise<string[]> {
  const { parent, child } = makeChannelPair();
  host.serve(parent, access);
  const calls = Object.entries(remoteHost(child)).map(async ([method, call]) => {
    const [outcome] = await Promise.allSettled([Reflect.apply(call, null, [])]);
    const isRefused = outcome.status === 'rejected' && String(outcome.reason) === `Error: no such call: ${method}`;
    return isRefused ? [] : [method];
  });
  return (await Promise.all(calls)).flat();
}

describe('the local driver in the parent process', () => {
  test('answers the worker every call', async () => {
    expect(await answered('all')).toEqual([...hostMethods]);
  });

  test('answers the API nothing but what reads: the check of settings, extensions and logs', async () => {
    expect((await answered('checks')).toSorted()).toEqual(['checkSettings', 'listExtensions', 'readLog']);
  });

  test('answers the proxy nothing', async () => {
    expect(await answered('none')).toEqual([]);
  });

  test('finds out what the machine allows', async () => {
    const facts = await host.readFacts();
    expect(Object.keys(facts.releases).map(Number)).toEqual(home.config.pgVersions);
    expect(facts.storageMethod).toMatch(/^(reflink|copy)$/);
    expect(facts.temporaryDiskEnforcement).toMatch(/^(disk|session)$/);
  });
});
