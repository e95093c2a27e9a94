import { fork } from 'node:child_process';
import { rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { makeChannelPair } from '../../../../test/helpers/channel-pair.ts';
import { CatnapError } from '../../../lib/errors.ts';
import { newBranchId, newEndpointId, newProjectId } from '../../../lib/ids.ts';
import { limits } from '../../contract/bench.ts';
import { StaleGenerationError } from '../../interface/driver.ts';
import type { DriverChannel } from '../../interface/driver-host.ts';
import { type HostCalls, type HostMethod, hostMethods } from './host-calls.ts';
import { remoteHost, serveHost } from './remote.ts';

const ref = {
  projectId: newProjectId(),
  branchId: newBranchId(),
  endpointId: newEndpointId(),
  tenantUid: 700_123,
};

function hostWith(methods: Partial<HostCalls>): HostCalls {
  const missing = () => Promise.reject(new Error('not in this test'));
  const none = Object.fromEntries(hostMethods.map((method) => [method, missing]));
  return { ...(none as Record<HostMethod, () => Promise<never>>), ...methods };
}

describe('the host behind a channel', () => {
  test('is reached from a real child process', async () => {
    const program = join(tmpdir(), `cn-child-${process.pid}.mjs`);
    await writeFile(
      program,
      `process.on('message', (reply) => process.exit(reply.value[0] === 'hello' ? 7 : 1));
       process.send({ hostCall: 1, method: 'list', args: [] });`,
    );
    const child = fork(program, { execArgv: [] });
    serveHost(hostWith({ list: () => Promise.resolve(['hello' as never]) }), child);
    const code = await new Promise((resolve) => child.on('exit', resolve));
    await rm(program);
    expect(code).toBe(7);
    const own: DriverChannel = process; // the other end has the right shape too
    expect(own).toBe(process);
  });

  test('gets the arguments, and its result comes back', async () => {
    const { parent, child } = makeChannelPair();
    const seen: unknown[] = [];
    serveHost(
      hostWith({
        stop: async (...args) => {
          seen.push(args);
          return null;
        },
        reload: async () => undefined,
        checkSettings: async () => null,
        inspect: async () => null,
        list: async () => [],
      }),
      parent,
    );
    const host = remoteHost(child);
    await host.stop(ref, 7);
    expect(seen).toEqual([[ref, 7]]);
    expect(await Promise.all([host.inspect(ref), host.list()])).toEqual([null, []]);
  });

  test('has a stub of every call, and of nothing else', async () => {
    const { parent, child } = makeChannelPair();
    const seen: string[] = [];
    const record = (method: HostMethod) => async () => void seen.push(method);
    const recorders = Object.fromEntries(hostMethods.map((method) => [method, record(method)]));
    serveHost(hostWith(recorders), parent);
    const host = remoteHost(child);
    expect(Object.keys(host)).toEqual([...hostMethods]);
    for (const call of Object.values(host)) await Reflect.apply(call, host, []);
    expect(seen).toEqual([...hostMethods]);
  });

  test('answers a child only the calls that it may make', async () => {
    const { parent, child } = makeChannelPair();
    serveHost({ checkSettings: async () => 'wrong' }, parent);
    const host = remoteHost(child);
    expect(await host.checkSettings(17, {})).toBe('wrong');
    await expect(host.stop(ref, 1)).rejects.toThrow('no such call: stop');
  });

  test('errors keep their class, kind and message', async () => {
    const { parent, child } = makeChannelPair();
    const stale = new StaleGenerationError('ep-x', 1, 2);
    serveHost(
      hostWith({
        stop: () => Promise.reject(stale),
        start: () => Promise.reject(new CatnapError('conflict', 'taken')),
        list: () => Promise.reject(new Error('plain')),
      }),
      parent,
    );
    const host = remoteHost(child);
    const thrown = await host.stop(ref, 1).catch((error: unknown) => error);
    expect(thrown).toBeInstanceOf(StaleGenerationError);
    expect(thrown).toMatchObject({ message: stale.message, name: 'StaleGenerationError' });
    const size = { tempDiskBytes: 1_048_576, limits };
    const spec = { ...ref, generation: 1, pgVersion: 17, settings: {}, ...size, adminSecret: 's' };
    await expect(host.start(spec)).rejects.toMatchObject({ kind: 'conflict', message: 'taken' });
    await expect(host.list()).rejects.toThrow('plain');
  });

  test('calls under way, and later ones, fail when the channel closes', async () => {
    const { parent, child } = makeChannelPair();
    serveHost(hostWith({ list: () => new Promise(() => undefined) }), parent);
    const host = remoteHost(child);
    const waiting = host.list();
    child.disconnect();
    await expect(waiting).rejects.toThrow(/parent process is gone/);
    await expect(host.list()).rejects.toThrow(/parent process is gone/);
  });

  test('other messages pass by, and only methods of the host can be called', async () => {
    const { parent, child } = makeChannelPair();
    serveHost(hostWith({}), parent);
    const replies: unknown[] = [];
    child.on('message', (message) => replies.push(message));
    for (const message of [null, 'text', { other: 1 }, { hostCall: 1 }]) parent.emit('message', message);
    for (const method of ['constructor', 'toString', '__proto__']) {
      parent.emit('message', { hostCall: 2, method, args: [] });
    }
    await expect.poll(() => replies).toHaveLength(3);
    for (const reply of replies) {
      expect(reply).toMatchObject({ error: { message: expect.stringMatching(/^no such call/) } });
    }
  });
});
