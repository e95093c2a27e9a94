/**
 * From an accepted socket to a startup or cancel packet: answers SSLRequest and GSSENCRequest, upgrades to TLS in
 * place, accepts TLS without an SSLRequest, and negotiates the protocol version.
 */
import type { ByteStream } from '../protocol/byte-stream.ts';
import { MessageStream } from '../protocol/message-stream.ts';
import { negotiateProtocolVersion } from '../protocol/messages.ts';
import { type FirstPacket, parseFirstPacket, type StartupPacket } from '../protocol/startup.ts';
import { ProtocolError } from '../protocol/wire.ts';
import { alpnProtocol, type TlsContext, upgradeToTls } from '../sockets/tls.ts';

export interface SecureFacts {
  /** The hostname that the client asked for in its TLS hello. */
  readonly serverName: string | null;
  readonly channelBinding: Buffer | null;
}

export interface OpenClient {
  readonly messages: MessageStream;
  /** Null on a plaintext connection. */
  readonly secure: SecureFacts | null;
  readonly packet: StartupPacket | Extract<FirstPacket, { kind: 'cancel' }>;
}

export interface NegotiateOptions {
  readonly tlsContext: () => TlsContext;
  readonly startupBytes: number;
  /** The TLS hello may follow the SSLRequest before our answer. */
  readonly mayPipelineTls: boolean;
  /** Called when the reader changes; null while TLS is being set up, when the client could not read an answer. */
  readonly onReader: (messages: MessageStream | null) => void;
}

const tlsHandshakeByte = 0x16;

export async function negotiate(stream: ByteStream, options: NegotiateOptions): Promise<OpenClient> {
  let messages = new MessageStream(stream, options.startupBytes);
  options.onReader(messages);
  let secure: SecureFacts | null = null;
  let gssAsked = false;

  const secureNow = async (directly: boolean) => {
    messages.release();
    options.onReader(null);
    const context = options.tlsContext();
    const secured = await upgradeToTls(stream, context);
    // Without ALPN, TLS without an SSLRequest could be another protocol's, redirected here by somebody in the middle.
    if (directly && secured.alpnProtocol !== alpnProtocol) {
      secured.stream.destroy();
      throw new ProtocolError('direct TLS connection without ALPN');
    }
    messages = new MessageStream(secured.stream, options.startupBytes);
    options.onReader(messages);
    secure = { serverName: secured.serverName, channelBinding: context.channelBinding };
  };

  if ((await messages.firstByte()) === tlsHandshakeByte) await secureNow(true);
  for (;;) {
    const packet = parseFirstPacket(await messages.readPacket());
    if (packet.kind === 'ssl') {
      if (secure) throw new ProtocolError('TLS is already in use');
      // Bytes before the handshake may be from somebody in the middle: they must not count as the client's. A
      // pipelined hello is safe nevertheless: whatever those bytes are, they go into the handshake and nowhere else.
      if (messages.unreadBytes > 0 && !options.mayPipelineTls)
        throw new ProtocolError('received unencrypted data after SSL request');
      messages.write(Buffer.from('S'));
      await secureNow(false);
    } else if (packet.kind === 'gssenc') {
      if (gssAsked) throw new ProtocolError('GSSAPI encryption was refused already');
      gssAsked = true;
      messages.write(Buffer.from('N'));
    } else {
      if (packet.kind === 'startup') answerVersion(messages, packet);
      return { messages, secure, packet };
    }
  }
}

function answerVersion(messages: MessageStream, packet: StartupPacket): void {
  if (packet.minorVersion === 0 && packet.extensions.length === 0) return;
  messages.write(negotiateProtocolVersion(packet.extensions));
}
