/** How a client of Postgres encrypts a connection that is open. */
import { once } from 'node:events';
import { isIP, type Socket } from 'node:net';
import { connect } from 'node:tls';

/** Without `verify-full` the server's certificate is not checked, as libpq does it. */
export const tlsModes = ['disable', 'prefer', 'require', 'verify-full'] as const;
export type TlsMode = (typeof tlsModes)[number];

/** "SSLRequest"; the answer is one letter. */
const request = Buffer.from([0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f]);
const accepted = 'S'.charCodeAt(0);

/** Paused, and the same socket where it stays as it is. The caller ends one that takes too long. */
export async function encrypt(socket: Socket, host: string, mode: TlsMode): Promise<Socket> {
  if (mode === 'disable') return socket;
  const close = () => socket.destroy(new Error('the server closed the connection'));
  socket.once('end', close).write(request);
  const [answer] = (await once(socket, 'data')) as [Buffer];
  socket.off('end', close).pause();
  if (answer[0] !== accepted) {
    if (mode === 'prefer') return socket;
    throw new Error('the server offers no TLS');
  }
  const name = isIP(host) === 0 ? { servername: host } : {};
  const encrypted = connect({ socket, ...name, rejectUnauthorized: mode === 'verify-full' });
  await once(encrypted, 'secureConnect');
  return encrypted;
}
