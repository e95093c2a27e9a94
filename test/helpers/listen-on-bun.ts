/** Run by Bun: listens like the proxy, says on which port, and then accepts nobody, because it never returns. */
import { writeSync } from 'node:fs';
import { listen } from '../../src/proxy/sockets/listen.ts';

const { port } = await listen({
  bind: '127.0.0.1',
  port: 0,
  portFd: null,
  keepAliveMs: 0,
  connectionsMax: 1,
  onConnection: () => {},
  onError: () => {},
});
writeSync(1, `${port}\n`);
Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
