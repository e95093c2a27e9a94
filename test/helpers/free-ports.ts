/** Ports of this machine that nobody listens on, for programs that must be told theirs. */
import { once } from 'node:events';
import { createServer } from 'node:net';

export async function freePort(): Promise<number> {
  return (await freePorts(1))[0] ?? 0;
}

/** All different: none is given back before the last one is found. */
export async function freePorts(count: number): Promise<readonly number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'));
  await Promise.all(servers.map((server) => once(server, 'listening')));
  const addresses = servers.map((server) => server.address());
  for (const server of servers) server.close();
  await Promise.all(servers.map((server) => once(server, 'close')));
  return addresses.map((address) => (typeof address === 'object' && address !== null ? address.port : 0));
}
