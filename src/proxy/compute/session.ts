/**
 * From a proven client to a working session: find the compute awake, log in there as the client, hand the greeting
 * over and start copying.
 */
import { delay } from '../../lib/clock.ts';
import { CatnapError } from '../../lib/errors.ts';
import { type Identity, passwordWrong } from '../client/authenticate.ts';
import { stripOptions } from '../client/route.ts';
import type { ProxyLimits } from '../kit/limits.ts';
import type { MessageStream } from '../protocol/message-stream.ts';
import { authenticationOk, backendKeyData, type ErrorReport } from '../protocol/messages.ts';
import { type Splice, splice } from '../sockets/splice.ts';
import { type CancelKeys, forwardCancel } from './cancel.ts';
import { type ComputeLogin, type LoginOutcome, logIn } from './login.ts';
import type { Waker } from './wake.ts';

/** The compute's own ErrorResponse, to be passed on byte for byte. */
export class ComputeRefusal extends Error {
  readonly sqlState: string;
  readonly response: Buffer;

  constructor(report: ErrorReport, response: Buffer) {
    super(report.message);
    this.name = 'ComputeRefusal';
    this.sqlState = report.sqlState;
    this.response = response;
  }
}

/** Between two wakes of a compute that should be awake and is not there. */
const firstPauseMs = 10;
const pauseMsMax = 250;

/** Rejects with what the client is to be told, or with the signal's reason. */
export async function connectToCompute(options: {
  identity: Identity;
  parameters: ReadonlyMap<string, string>;
  waker: Waker;
  limits: ProxyLimits;
  signal: AbortSignal;
}): Promise<ComputeLogin> {
  const { identity, waker, limits, signal } = options;
  const { keys, verifier, route } = identity;
  const parameters = forwardedParameters(options.parameters);
  let cause: unknown;
  // An address is stale right after a suspend, and after an accident until that is noticed and repaired.
  const giveUpAt = Date.now() + limits.unreachableMs;
  for (let wakes = 0; wakes < 2 || Date.now() < giveUpAt; wakes++) {
    if (wakes > 1) await delay(Math.min(pauseMsMax, firstPauseMs * 2 ** wakes), signal);
    const address = await waker.wake(route.endpointId, signal);
    for (let attempt = 0; attempt < limits.dialAttempts; attempt++) {
      if (attempt > 0) await delay(limits.dialRetryMs, signal);
      signal.throwIfAborted();
      const outcome = await logIn({ address, parameters, keys, verifier, timeoutMs: limits.dialMs, signal });
      if (outcome.kind !== 'not_ready') return requireOpen(outcome, identity.role);
      cause = outcome.cause;
    }
  }
  throw new CatnapError('unavailable', "Couldn't connect to compute node", { cause });
}

function requireOpen(outcome: Exclude<LoginOutcome, { kind: 'not_ready' }>, role: string): ComputeLogin {
  if (outcome.kind === 'refused') throw new ComputeRefusal(outcome.report, outcome.response);
  if (outcome.kind === 'password_differs') throw passwordWrong(role);
  return outcome;
}

/** What the client said, less what was meant for the proxy. */
export function forwardedParameters(parameters: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
  const kept = new Map(parameters);
  // Some drivers send every parameter of the URL on; the compute would refuse this one as unknown.
  kept.delete('channel_binding');
  const options = stripOptions(kept.get('options') ?? '');
  if (options === null) kept.delete('options');
  else kept.set('options', options);
  return kept;
}

/** Hands the compute to the client. The cancel key lives as long as the session. */
export function startSession(options: {
  messages: MessageStream;
  compute: ComputeLogin;
  cancelKeys: CancelKeys;
  cancelMs: number;
  onClientBytes: () => void;
}): Splice {
  const { messages, compute } = options;
  const cancel = () => forwardCancel(compute, options.cancelMs);
  const { key, revoke } = options.cancelKeys.issue({ cancel });
  messages.write(Buffer.concat([authenticationOk, compute.greeting, backendKeyData(key), compute.ready]));
  const session = splice({
    client: messages.release(),
    compute: compute.socket,
    onClientBytes: options.onClientBytes,
    interrupt: cancel,
  });
  session.done.then(revoke);
  return session;
}
