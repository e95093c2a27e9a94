/** Which servers are announced when they come to accept connections. */
import { stat } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../../../../../test/helpers/eventually.ts';
import { type LocalSubject, makeLocalSubject } from '../../../../../test/helpers/local-subject.ts';
import { asEndpointId } from '../../../../lib/ids.ts';
import { Bench } from '../../../contract/bench.ts';
import type { ReadyServer } from '../../../interface/driver-host.ts';
import { LocalDriver } from '../../driver/local-driver.ts';
import { ReadyServers } from './ready-servers.ts';

const endpointId = asEndpointId('ep-a');
const address = { kind: 'unix', path: '/nowhere' } as const;

test('a server is announced once, to all who follow, and only if that start of it was expected', () => {
  const servers = new ReadyServers();
  const heard: [string, ReadyServer][] = [];
  const endFirst = servers.follow((server) => heard.push(['first', server]));
  servers.follow((server) => heard.push(['second', server]));
  servers.note({ endpointId, generation: 1, address });
  servers.expect(endpointId, 3);
  servers.note({ endpointId, generation: 2, address });
  servers.note({ endpointId: asEndpointId('ep-b'), generation: 3, address });
  expect(heard).toEqual([]);
  const expected = { endpointId, generation: 3, address };
  servers.note(expected);
  servers.note(expected);
  expect(heard).toEqual([
    ['first', expected],
    ['second', expected],
  ]);
  endFirst();
  servers.expect(endpointId, 4);
  servers.note({ ...expected, generation: 4 });
  expect(heard.slice(2)).toEqual([['second', { ...expected, generation: 4 }]]);
});

let subject: LocalSubject;
beforeAll(async () => {
  subject = await makeLocalSubject(17);
});
afterAll(() => subject.close());

test('a real server is announced with the address at which it listens, before its start returns', async () => {
  const host = subject.openHost();
  const driver = new LocalDriver(host);
  const bench = new Bench({ ...subject, driver });
  await bench.createBranch();
  const announced: ReadyServer[] = [];
  host.readyServers.follow((server) => announced.push(server));
  let generation = 0;
  // A server that takes a second to come up is not waited for, so there may be another start.
  const running = await eventually(async () => {
    generation++;
    announced.length = 0;
    await driver.expectClients(bench.ref, generation);
    await driver.start(bench.spec(generation));
    const soon = [...announced];
    const { address } = await bench.untilRunning();
    expect(soon).toEqual([{ endpointId: bench.ref.endpointId, generation, address }]);
    return { address };
  });
  if (running.address?.kind !== 'unix') throw new Error('a local server has a unix socket');
  expect((await stat(running.address.path)).isSocket()).toBe(true);
  await driver.removeProject(bench.ref);
});
