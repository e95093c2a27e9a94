/**
 * From an authenticated client to a running session: wake the compute, log in there as the client, pass its greeting on
 * and start copying.
 */
import { delay } from '../../lib/clock.ts';
import { CatnapError } from '../../lib/errors.ts';
import { type Identity, passwordWrong } from '../client/authenticate.ts';
import { stripOptions } from '../client/route.ts';
import type { DialAddress } from '../kit/control-plane.ts';
import type { ProxyLimits } from '../kit/limits.ts';
import { serverIsFull } from '../permits/budget.ts';
import type { MessageStream } from '../protocol/message-stream.ts';
import { authenticationOk, backendKeyData, type ErrorReport } from '../protocol/messages.ts';
import { type Splice, splice } from '../sockets/splice.ts';
import { type CancelKeys, forwardCancel } from './cancel.ts';
import { EarlyLogin } from './early-login.ts';
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

/** The first and the longest pause between two wakes of a compute that should be awake and cannot be reached. */
const firstPauseMs = 10;
const pauseMsMax = 250;

/** Between two logins at a server that is full. */
const fullRetryMs = 50;
/** How Postgres refuses a session for which it has no room; a limit of a role or a database is put in other words. */
const serverIsFullPattern = /^(remaining connection slots are reserved|sorry, too many clients already)/;

export interface ConnectOptions {
  identity: Identity;
  parameters: ReadonlyMap<string, string>;
  /** Of the token that the client has logged in with, as JSON. */
  claims?: string | null;
  waker: Waker;
  limits: ProxyLimits;
  signal: AbortSignal;
}

/**
 * For a direct session that has its permit. The server may be full all the same: until the endpoint has been reached
 * once its size is not known, and a backend whose client has left is a moment on its way out.
 */
export async function connectDirectly(options: ConnectOptions): Promise<ComputeLogin> {
  const giveUpAt = Date.now() + options.limits.permitMs;
  for (;;) {
    try {
      return await connectToCompute(options);
    } catch (thrown) {
      if (!(thrown instanceof ComputeRefusal && serverIsFullPattern.test(thrown.message))) throw thrown;
      if (Date.now() >= giveUpAt) throw new CatnapError('too_many_connections', serverIsFull, { cause: thrown });
      await delay(fullRetryMs, options.signal);
      options.signal.throwIfAborted();
    }
  }
}

/** Rejects with an error for the client, or with the signal's reason. */
export async function connectToCompute(options: ConnectOptions): Promise<ComputeLogin> {
  const { identity, limits, signal } = options;
  const { keys, verifier } = identity;
  const parameters = withClaims(forwardedParameters(options.parameters), options.claims ?? '');
  const logInAt = (address: DialAddress) =>
    logIn({ address, parameters, keys, verifier, timeoutMs: limits.dialMs, signal });
  let cause: unknown;
  // An address is stale right after a suspend, and after a crash until the crash is noticed and repaired.
  const giveUpAt = Date.now() + limits.unreachableMs;
  for (let wakes = 0; wakes < 2 || Date.now() < giveUpAt; wakes++) {
    if (wakes > 1) await delay(Math.min(pauseMsMax, firstPauseMs * 2 ** wakes), signal);
    const { address, compute } = await wakeAndLogIn(options, logInAt);
    if (compute !== null) return compute;
    for (let attempt = 0; attempt < limits.dialAttempts; attempt++) {
      if (attempt > 0) await delay(limits.dialRetryMs, signal);
      signal.throwIfAborted();
      const outcome = await logInAt(address);
      if (outcome.kind !== 'not_ready') return requireOpen(outcome, identity.role);
      cause = outcome.cause;
      if (outcome.isAstray) break;
    }
  }
  throw new CatnapError('unavailable', "Couldn't connect to compute node", { cause });
}

/** With the session, if its login could begin before the route was open. */
async function wakeAndLogIn(
  { identity, waker, signal }: ConnectOptions,
  logInAt: (address: DialAddress) => Promise<LoginOutcome>,
): Promise<{ address: DialAddress; compute: ComputeLogin | null }> {
  const early = new EarlyLogin(logInAt);
  try {
    const address = await waker.wake(identity.route.endpointId, signal, (ready) => early.begin(ready));
    return { address, compute: await early.take(address) };
  } finally {
    early.discard();
  }
}

function requireOpen(outcome: Exclude<LoginOutcome, { kind: 'not_ready' }>, role: string): ComputeLogin {
  if (outcome.kind === 'refused') throw new ComputeRefusal(outcome.report, outcome.response);
  if (outcome.kind === 'password_differs') throw passwordWrong(role);
  return outcome;
}

/** The client's startup parameters, without those that are meant for the proxy. */
export function forwardedParameters(parameters: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
  const kept = new Map(parameters);
  // Some drivers send every parameter of the URL; the compute would refuse this one as unknown.
  kept.delete('channel_binding');
  const options = stripOptions(kept.get('options') ?? '');
  if (options === null) kept.delete('options');
  else kept.set('options', options);
  return kept;
}

const claimsSetting = 'request.jwt.claims';

/**
 * Sets the claims for every session, empty without a token: what a session begins with can be read again whatever SQL
 * has made of the setting since, so policies can rely on it. It comes last, because of several values the last counts,
 * and a client may have sent one of its own, in `options` too.
 */
export function withClaims(parameters: ReadonlyMap<string, string>, claims: string): ReadonlyMap<string, string> {
  const others = [...parameters].filter(([name]) => name.toLowerCase() !== claimsSetting);
  return new Map([...others, [claimsSetting, claims]]);
}

/** Connects the client to the compute. The cancel key is valid as long as the session lasts. */
export function startSession(options: {
  messages: MessageStream;
  /** The client has AuthenticationOk already; a second one would be an error to it. */
  isToldOk?: boolean;
  compute: ComputeLogin;
  cancelKeys: CancelKeys;
  cancelMs: number;
  onClientBytes: () => void;
  sent: { bytes: number };
  admit?: ((chunk: Buffer) => Buffer) | undefined;
}): Splice {
  const { messages, compute } = options;
  const cancel = () => forwardCancel(compute, options.cancelMs);
  const { key, revoke } = options.cancelKeys.issue({ cancel }, compute.key.processId);
  const ok = options.isToldOk ? [] : [authenticationOk];
  const greeting = Buffer.concat([...ok, compute.greeting, backendKeyData(key), compute.ready]);
  options.sent.bytes += greeting.length;
  messages.write(greeting);
  const session = splice({
    client: messages.release(),
    compute: compute.socket,
    onClientBytes: options.onClientBytes,
    sent: options.sent,
    interrupt: cancel,
    admit: options.admit,
  });
  session.done.then(revoke);
  return session;
}
