/**
 * The SCRAM verifier of a login whose password is known. The login of the tests may not read pg_authid; but any client
 * is told salt and count, and the rest is arithmetic.
 */
import { connect } from 'node:net';
import { buildVerifier } from '../../src/lib/scram-verifier.ts';
import { MessageStream } from '../../src/proxy/protocol/message-stream.ts';
import { parseAuthentication, saslInitialResponse, startupMessage } from '../../src/proxy/protocol/messages.ts';
import { scramMechanism, startClientExchange } from '../../src/proxy/protocol/scram.ts';

export async function learnVerifier(login: { path: string; username: string; password: string }): Promise<string> {
  const socket = connect(login.path);
  const messages = new MessageStream(socket, 10_000);
  messages.write(startupMessage([['user', login.username]]));
  await messages.readMessage();
  messages.write(saslInitialResponse(scramMechanism, startClientExchange().first));
  const answer = parseAuthentication((await messages.readMessage()).body);
  socket.destroy();
  const [, salt = '', iterations = ''] =
    answer.kind === 'sasl_continue' ? (/s=([^,]+),i=(\d+)/.exec(answer.data) ?? []) : [];
  return buildVerifier(login.password, Buffer.from(salt, 'base64'), Number(iterations));
}
