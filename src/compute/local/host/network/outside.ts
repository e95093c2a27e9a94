/**
 * A network namespace from which the internet can be reached, and neither this machine nor its neighbours. slirp4netns
 * carries the traffic: an ordinary program that opens ordinary connections, so the machine's own network is left as it
 * is. It ends with the last process of the server, and a server that outlives it is cut off rather than let loose.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import type { Duplex } from 'node:stream';
import { familyOf, isBlockWithin } from '../../../../lib/ip.ts';
import { programEnvironment, runProgram } from '../../../../lib/run-program.ts';
import { makeNamespace, type Namespace } from './namespace.ts';

/** How servers see the machine if its operator lets them: a range that no network has (RFC 6890). */
const gateway = '192.0.0.2';
const range = '192.0.0.0/24';
const device = 'tap0';
const readyMsMax = 20_000;

/** Everything that is not the internet: private, shared, link-local, benchmarks, multicast, reserved. */
const closedRanges = [
  '10.0.0.0/8',
  '172.16.0.0/12',
  '192.168.0.0/16',
  '100.64.0.0/10',
  '169.254.0.0/16',
  '198.18.0.0/15',
  '224.0.0.0/4',
  '240.0.0.0/4',
];

export interface OutsideNetwork {
  readonly fd: number;
  /** The server must inherit it: the traffic ends when nobody has it open any more. */
  readonly lifeline: Duplex;
  /** Call it when the server has begun, or will not. */
  close(): void;
}

/** `allowed`: ranges that the operator opens too, and the word `loopback`. */
export async function makeOutsideNetwork(allowed: readonly string[]): Promise<OutsideNetwork> {
  const namespace = await makeNamespace();
  const { fd } = namespace;
  let carrier: ChildProcess | undefined;
  const close = () => {
    carrier?.stdio[4]?.destroy();
    closeSync(fd);
  };
  try {
    carrier = await startCarrier(namespace, allowed.includes('loopback'));
    await setRoutes(fd, routesFor(allowed, { resolvers: await nameservers(), own: ownAddresses() }));
    return { fd, lifeline: carrier.stdio[4] as Duplex, close };
  } catch (error) {
    close();
    throw error;
  } finally {
    namespace.release();
  }
}

async function startCarrier({ keeperPid }: Namespace, withLoopback: boolean): Promise<ChildProcess> {
  const words = ['--configure', '--mtu=65520', `--cidr=${range}`, '--enable-sandbox', '--enable-seccomp'];
  if (!withLoopback) words.push('--disable-host-loopback');
  const carrier = spawn('slirp4netns', [...words, '--ready-fd=3', '--exit-fd=4', String(keeperPid), device], {
    cwd: '/',
    env: programEnvironment,
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe', 'pipe', 'pipe'],
  });
  carrier.unref();
  let said = '';
  carrier.stderr?.on('data', (text: Buffer) => {
    said = (said + text.toString()).slice(-1_000);
  });
  await new Promise<void>((resolve, reject) => {
    const fail = (reason: string) => reject(new Error(`the way out could not be made: slirp4netns: ${reason}`));
    const timer = setTimeout(() => fail('it took too long'), readyMsMax);
    carrier.on('error', (error) => fail(error.message));
    carrier.on('exit', (code) => fail(said.trim() || `exit code ${code}`));
    carrier.stdio[3]?.on('data', () => resolve());
    carrier.once('exit', () => clearTimeout(timer));
    carrier.stdio[3]?.once('data', () => clearTimeout(timer));
  });
  // Nothing of it may keep this process from ending, nor end with it.
  carrier.stderr?.destroy();
  carrier.stdio[3]?.destroy();
  return carrier;
}

/** Addresses of the machine's resolvers, without which no name is found there. One on loopback cannot be reached. */
async function nameservers(): Promise<string[]> {
  const text = await readFile('/etc/resolv.conf', 'utf8').catch(() => '');
  const found = [...text.matchAll(/^nameserver\s+(\S+)/gm)].map(([, address = '']) => address);
  return found.filter((address) => familyOf(address) === 'ipv4' && !address.startsWith('127.'));
}

/** What listens on all addresses, behind a firewall perhaps, is not for tenants. */
function ownAddresses(): string[] {
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  return all.filter(({ family, internal }) => family === 'IPv4' && !internal).map(({ address }) => address);
}

interface Machine {
  readonly resolvers: readonly string[];
  readonly own: readonly string[];
}

/** Lines for `ip -batch`. What the operator has listed is taken out of what is closed. */
export function routesFor(allowed: readonly string[], { resolvers, own }: Machine): string[] {
  const ranges = allowed.filter((one) => one !== 'loopback');
  const closed = [...closedRanges, ...own.map((address) => `${address}/32`)].filter(
    (one) => !ranges.some((other) => isBlockWithin(one, other)),
  );
  return [
    // Several devices may have the same address, as those of containers often do.
    ...[...new Set(closed)].map((one) => `route add unreachable ${one}`),
    ...[...ranges, ...resolvers.map((address) => `${address}/32`)]
      .filter((one) => one !== '0.0.0.0/0')
      .map((one) => `route replace ${one} via ${gateway} dev ${device}`),
  ];
}

async function setRoutes(fd: number, lines: readonly string[]): Promise<void> {
  await runProgram('nsenter', [`--net=/proc/${process.pid}/fd/${fd}`, '--', 'ip', '-batch', '-'], {
    input: `${lines.join('\n')}\n`,
  });
}
