/**
 * Logs in at a compute as the client, with the keys that the client has proved to know, up to ReadyForQuery. The
 * outcome is a value, because each kind of it is handled differently.
 */
import type { ScramKeys, ScramVerifier } from '../../lib/scram-verifier.ts';
import type { DialAddress } from '../kit/control-plane.ts';
import type { ByteStream } from '../protocol/byte-stream.ts';
import { MessageStream } from '../protocol/message-stream.ts';
import {
  type BackendKey,
  type ErrorReport,
  parseAuthentication,
  parseBackendKeyData,
  parseErrorResponse,
  saslInitialResponse,
  saslResponse,
  startupMessage,
} from '../protocol/messages.ts';
import { isSameText, proveToServer, scramMechanism, startClientExchange } from '../protocol/scram.ts';
import { encodeMessage, ProtocolError } from '../protocol/wire.ts';
import { dialSoon, startDeadline } from './dial.ts';

export interface ComputeLogin {
  readonly kind: 'open';
  readonly socket: ByteStream;
  readonly address: DialAddress;
  readonly key: BackendKey;
  /** ParameterStatus messages and notices in the order they came, ready to be passed on. */
  readonly greeting: Buffer;
  /** The closing ReadyForQuery. */
  readonly ready: Buffer;
}

export type LoginOutcome =
  | ComputeLogin
  /** Nothing answers at the address, or not yet: worth another try. */
  | {
      readonly kind: 'not_ready';
      readonly cause: unknown;
      /** Not even a refusal came back: what had the address is gone, and the compute may be elsewhere by now. */
      readonly isAstray?: boolean;
    }
  /** The compute refused the login; the client gets its ErrorResponse as it is. */
  | { readonly kind: 'refused'; readonly report: ErrorReport; readonly response: Buffer }
  /** The role's password is no longer the one that the client proved. */
  | { readonly kind: 'password_differs' };

export interface LoginOptions {
  readonly address: DialAddress;
  readonly parameters: ReadonlyMap<string, string>;
  readonly keys: ScramKeys;
  readonly verifier: ScramVerifier;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** Bound of one message: a server sends only settings and notices before ReadyForQuery. */
const messageBytesMax = 1_000_000;
/** Starting up, shutting down or in recovery; and shut down or crashed during the login. */
const notReadyStates: ReadonlySet<string> = new Set(['57P03', '57P01', '57P02']);
const passwordState = '28P01';

export async function logIn(options: LoginOptions): Promise<LoginOutcome> {
  const deadline = startDeadline(options.timeoutMs, options.signal);
  let socket: ByteStream | undefined;
  try {
    socket = await dialSoon(options.address, deadline);
    const messages = new MessageStream(socket, messageBytesMax);
    const interrupt = () => messages.interrupt(new Error('gave up waiting for the compute'));
    deadline.signal.addEventListener('abort', interrupt, { once: true });
    const outcome = await converse(messages, socket, options);
    if (outcome.kind === 'open') messages.release();
    else socket.destroy();
    return outcome;
  } catch (cause) {
    socket?.destroy();
    options.signal.throwIfAborted();
    return { kind: 'not_ready', cause, isAstray: socket === undefined && isAstray(options.address, cause) };
  } finally {
    deadline.clear();
  }
}

const isAstray = ({ kind }: DialAddress, cause: unknown) =>
  kind === 'tcp' && (cause as NodeJS.ErrnoException).code !== 'ECONNREFUSED';

async function converse(messages: MessageStream, socket: ByteStream, options: LoginOptions): Promise<LoginOutcome> {
  messages.write(startupMessage(options.parameters));
  const refusal = await runScram(messages, options);
  if (refusal) return refusal;
  const greeting: Buffer[] = [];
  let key: BackendKey = { processId: 0, secret: 0 };
  for (;;) {
    const { type, body } = await messages.readMessage();
    if (type === 'E') return asRefusal(body);
    if (type === 'K') key = parseBackendKeyData(body);
    else if (type === 'S' || type === 'N') greeting.push(encodeMessage(type, body));
    else if (type === 'Z') {
      const ready = encodeMessage(type, body);
      return { kind: 'open', socket, address: options.address, key, greeting: Buffer.concat(greeting), ready };
    } else throw new ProtocolError(`unexpected message "${type}" from the compute`);
  }
}

/** Null when logged in. A server that asks for no proof has not proved itself either, so it is not accepted. */
async function runScram(messages: MessageStream, options: LoginOptions): Promise<LoginOutcome | null> {
  const exchange = startClientExchange();
  let expectedServerFinal: string | null = null;
  let serverIsProven = false;
  for (;;) {
    const { type, body } = await messages.readMessage();
    if (type === 'E') return asRefusal(body);
    if (type === 'N') continue;
    if (type !== 'R') throw new ProtocolError(`unexpected message "${type}" from the compute`);
    const request = parseAuthentication(body);
    if (request.kind === 'sasl' && request.mechanisms.includes(scramMechanism)) {
      messages.write(saslInitialResponse(scramMechanism, exchange.first));
    } else if (request.kind === 'sasl_continue' && expectedServerFinal === null) {
      const proof = proveToServer(exchange, request.data, options.keys, options.verifier);
      if (!proof) return { kind: 'password_differs' };
      expectedServerFinal = proof.expectedServerFinal;
      messages.write(saslResponse(proof.final));
    } else if (request.kind === 'sasl_final' && expectedServerFinal !== null) {
      serverIsProven = isSameText(request.data, expectedServerFinal);
      if (!serverIsProven) throw new ProtocolError('the compute could not prove that it knows the role');
    } else if (request.kind === 'ok' && serverIsProven) {
      return null;
    } else {
      throw new ProtocolError('the compute does not authenticate by SCRAM-SHA-256');
    }
  }
}

function asRefusal(body: Buffer): LoginOutcome {
  const report = parseErrorResponse(body);
  if (notReadyStates.has(report.sqlState)) return { kind: 'not_ready', cause: new Error(report.message) };
  if (report.sqlState === passwordState) return { kind: 'password_differs' };
  return { kind: 'refused', report, response: encodeMessage('E', body) };
}
