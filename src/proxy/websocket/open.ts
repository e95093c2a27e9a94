/**
 * The HTTP request that becomes a WebSocket. The API passes it on with the client's address; everything else about it
 * is checked here.
 */
import { createHash } from 'node:crypto';
import { type IncomingMessage, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { WebSocketStream } from './stream.ts';

export const webSocketPath = '/v2';

export interface OpenWebSocket {
  readonly stream: WebSocketStream;
  /** Hostnames that may name the endpoint, the most telling one first. */
  readonly hostnames: readonly string[];
}

const acceptSuffix = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
const version = '13';
/** Sixteen bytes in Base64. */
const keyPattern = /^[A-Za-z0-9+/]{22}==$/;

/** Null when the request is refused, which has then been answered. */
export function openWebSocket(
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
  pingMs: number,
): OpenWebSocket | null {
  // Until the stream listens, an error of the socket would end the process.
  socket.on('error', () => {});
  const url = new URL(request.url ?? '/', 'http://localhost');
  const { headers } = request;
  const key = headers['sec-websocket-key'];
  if (url.pathname !== webSocketPath) return refuse(socket, 404, 'path not found');
  if (request.method !== 'GET' || headers.upgrade?.toLowerCase() !== 'websocket') {
    return refuse(socket, 400, 'invalid request: not a request for a WebSocket');
  }
  if (headers['sec-websocket-version'] !== version) {
    return refuse(socket, 426, `invalid request: the WebSocket version must be ${version}`);
  }
  if (key === undefined || !keyPattern.test(key)) {
    return refuse(socket, 400, 'invalid request: Sec-WebSocket-Key must be 16 bytes in Base64');
  }
  const accept = createHash('sha1').update(`${key}${acceptSuffix}`).digest('base64');
  socket.write(
    'HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n' +
      `sec-websocket-accept: ${accept}\r\n\r\n`,
  );
  if (head.length > 0) socket.unshift(head);
  const hostnames = [url.searchParams.get('address'), headers.host].flatMap(hostnameOf);
  return { stream: new WebSocketStream(socket, pingMs), hostnames };
}

/** `host` or `host:port`. */
function hostnameOf(authority: string | null | undefined): string[] {
  const name = /^([a-z0-9.-]+)(:\d*)?$/i.exec(authority ?? '')?.[1];
  return name === undefined ? [] : [name];
}

function refuse(socket: Duplex, status: number, message: string): null {
  const body = JSON.stringify({ code: '', message });
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\ncontent-type: application/json; charset=utf-8\r\n` +
      `content-length: ${Buffer.byteLength(body)}\r\nsec-websocket-version: ${version}\r\nconnection: close\r\n\r\n${body}`,
    () => socket.destroy(),
  );
  return null;
}
