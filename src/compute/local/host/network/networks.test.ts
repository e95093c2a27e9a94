/** Real namespaces: what a program in one reaches, and what is left when its server ends. */
import { execFile, spawnSync } from 'node:child_process';
import { createServer, type Server } from 'node:net';
import { networkInterfaces } from 'node:os';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../../../../../test/helpers/eventually.ts';
import { Networks } from './networks.ts';
import { routesFor } from './outside.ts';

const run = promisify(execFile);
const canTry = process.getuid?.() === 0 && spawnSync('unshare', ['--net', 'true']).status === 0;
const canGoOut = canTry && spawnSync('slirp4netns', ['--version']).status === 0;
const ownAddress = Object.values(networkInterfaces())
  .flat()
  .find((one) => one?.family === 'IPv4' && !one.internal)?.address;

let listener: Server;
let port: number;

beforeAll(async () => {
  listener = createServer((socket) => socket.end('reached'));
  await new Promise<void>((resolve) => listener.listen(0, '0.0.0.0', resolve));
  port = (listener.address() as { port: number }).port;
});
afterAll(() => listener.close());

/** What a connection from inside gives: the listener's word, or the error's code. */
async function reach(fd: number, address: string): Promise<string> {
  const script = `const s = require('net').connect(${port}, '${address}');
    s.setTimeout(5000, () => s.destroy(new Error('timeout')));
    s.on('data', (d) => console.log(String(d))).on('error', (e) => console.log(e.code ?? e.message));`;
  const words = [`--net=/proc/${process.pid}/fd/${fd}`, '--', process.execPath, '-e', script];
  return (await run('nsenter', words)).stdout.trim();
}

describe('networks of servers', () => {
  test('without root there are none, and it says why', async () => {
    const networks = new Networks({ isRoot: false, allowed: [] });
    expect(await networks.facts()).toEqual({ networkProblem: 'Catnap does not run as root', outsideProblem: null });
    expect(await networks.open('none')).toBeNull();
  });

  test.runIf(canTry)('the usual one reaches nothing, not even this machine', async () => {
    const network = await new Networks({ isRoot: true, allowed: [] }).open('none');
    expect(await reach(network?.fd ?? -1, '127.0.0.1')).toBe('ENETUNREACH');
    if (ownAddress !== undefined) expect(await reach(network?.fd ?? -1, ownAddress)).toBe('ENETUNREACH');
  });

  test.runIf(canGoOut)('the outside has neither this machine nor private networks, until they are listed', async () => {
    const closed = await new Networks({ isRoot: true, allowed: [] }).open('outside');
    expect(await reach(closed?.fd ?? -1, '127.0.0.1')).toBe('ECONNREFUSED');
    expect(await reach(closed?.fd ?? -1, '192.0.0.2')).toMatch(/ECONNREFUSED|ENETUNREACH|EHOSTUNREACH|timeout/);
    if (ownAddress !== undefined) expect(await reach(closed?.fd ?? -1, ownAddress)).toMatch(/UNREACH/);
    expect(await reach(closed?.fd ?? -1, '10.1.2.3')).toMatch(/ENETUNREACH|EHOSTUNREACH/);
    closed?.close();
    const allowed = ['loopback', ...(ownAddress === undefined ? [] : [`${ownAddress}/32`])];
    const open = await new Networks({ isRoot: true, allowed }).open('outside');
    expect(await reach(open?.fd ?? -1, '192.0.0.2')).toBe('reached');
    if (ownAddress !== undefined) expect(await reach(open?.fd ?? -1, ownAddress)).toBe('reached');
    open?.close();
  });

  test.runIf(canGoOut)('what carries the traffic ends with the server', async () => {
    const mine = async () => (await run('ps', ['-eo', 'ppid=,args='])).stdout.match(carrier)?.length ?? 0;
    const carrier = new RegExp(`^\\s*${process.pid} slirp4netns`, 'gm');
    const before = await mine();
    const network = await new Networks({ isRoot: true, allowed: [] }).open('outside');
    expect(await mine()).toBe(before + 1);
    network?.close();
    await eventually(async () => expect(await mine()).toBe(before));
  });
});

test('what the operator lists is taken out of what is closed', () => {
  const machine = { resolvers: ['10.0.0.53'], own: ['203.0.113.7'] };
  const closed = routesFor([], { resolvers: [], own: ['203.0.113.7'] });
  expect(closed).toContain('route add unreachable 203.0.113.7/32');
  expect(closed).toContain('route add unreachable 10.0.0.0/8');
  expect(closed.every((line) => line.startsWith('route add unreachable '))).toBe(true);
  const some = routesFor(['loopback', '10.20.0.0/16', '192.168.0.0/16', '203.0.113.7/32'], machine);
  expect(some).toContain('route add unreachable 10.0.0.0/8');
  expect(some).not.toContain('route add unreachable 203.0.113.7/32');
  expect(some).not.toContain('route add unreachable 192.168.0.0/16');
  expect(some).toContain('route replace 10.20.0.0/16 via 192.0.0.2 dev tap0');
  expect(some).toContain('route replace 10.0.0.53/32 via 192.0.0.2 dev tap0');
  // `ip` refuses a route that is there already.
  const twice = routesFor([], { resolvers: [], own: ['203.0.113.7', '203.0.113.7'] });
  expect(twice).toEqual(closed);
  expect(routesFor(['0.0.0.0/0'], { resolvers: [], own: ['203.0.113.7'] })).toEqual([]);
});
