import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { chooseProxyRuntime } from '../../../machine/proxy-runtime.ts';

const bun = await chooseProxyRuntime('bun').catch(() => null);
/** More than Bun's own backlog takes. */
const clients = 700;

test.skipIf(bun === null)('clients that a busy proxy has not accepted wait, and are not refused', async () => {
  const script = fileURLToPath(new URL('../../../../test/helpers/listen-on-bun.ts', import.meta.url));
  const child = spawn(bun?.program ?? '', ['--no-env-file', '--no-install', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const [line] = await once(child.stdout, 'data');
  const port = Number(String(line));
  const sockets: Socket[] = [];
  onTestFinished(() => sockets.forEach((socket) => void socket.destroy()));
  for (let i = 0; i < clients; i++) sockets.push(connect(port, '127.0.0.1'));
  await Promise.all(sockets.map((socket) => once(socket, 'connect')));
  expect(sockets.filter(({ readyState }) => readyState === 'open')).toHaveLength(clients);
});
