/**
 * Serves a request that asks for a protocol that is not spoken here, as HTTP allows, without the upgrade. Some clients
 * ask for HTTP/2 with every request of a plain connection (Java's own, `curl --http2`). Once a server listens for
 * upgrades, Node hands it the sockets of all of them, and the only way back is to have the request parsed again.
 */
import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';

const droppedHeaders: ReadonlySet<string> = new Set(['upgrade', 'http2-settings']);

export function serveAsRequest(server: Server, request: IncomingMessage, socket: Socket, head: Buffer): void {
  const { method, url, httpVersion, rawHeaders } = request;
  const lines = [`${method} ${url} HTTP/${httpVersion}`];
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? '';
    const value = rawHeaders[at + 1] ?? '';
    const kept = name.toLowerCase() === 'connection' ? withoutDropped(value) : value;
    if (!droppedHeaders.has(name.toLowerCase())) lines.push(`${name}: ${kept}`);
  }
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), head]));
  server.emit('connection', socket);
}

function withoutDropped(connection: string): string {
  const options = connection.split(',').map((option) => option.trim());
  return options.filter((option) => !droppedHeaders.has(option.toLowerCase())).join(', ');
}
