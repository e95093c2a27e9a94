/**
 * One Catnap for one data home. The lock is a listening socket: it vanishes with its process however that ends, and a
 * second Catnap can distinguish a live one from a leftover by connecting.
 */
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { connect, createServer } from 'node:net';

export interface InstanceLock {
  release(): Promise<void>;
}

export async function takeInstanceLock(path: string, home: string): Promise<InstanceLock> {
  if (await answers(path)) throw new Error(`another Catnap is running on ${home}: stop it first, or set CATNAP_HOME`);
  await rm(path, { force: true });
  const server = createServer((socket) => socket.destroy());
  server.listen(path);
  await once(server, 'listening');
  return {
    release: async () => {
      server.close();
      await once(server, 'close');
    },
  };
}

/** Whether the Catnap that holds this lock lives. */
export async function answers(path: string): Promise<boolean> {
  const socket = connect(path);
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
