/**
 * Calls from the worker, which has dropped its privileges, to the host in the parent process, over Node's own channel
 * between the two. The channel may carry other messages too; they are ignored here.
 */
import { CatnapError, type ErrorKind } from '../../../lib/errors.ts';
import { NoSuchMomentError, StaleGenerationError } from '../../interface/driver.ts';
import type { DriverChannel } from '../../interface/driver-host.ts';
import { type HostCalls, type HostMethod, hostMethods } from './host-calls.ts';

interface Call {
  readonly hostCall: number;
  readonly method: HostMethod;
  readonly args: readonly unknown[];
}

type Reply =
  | { readonly hostReply: number; readonly value: unknown }
  | { readonly hostReply: number; readonly error: SentError };

interface SentError {
  readonly name: string;
  readonly message: string;
  readonly kind?: ErrorKind;
}

/** In the parent: answers the calls of one child. A call whose child dies before the answer still runs to its end. */
export function serveHost(host: Partial<HostCalls>, child: DriverChannel): void {
  child.on('message', (message) => {
    if (!isCall(message)) return;
    const reply = (answer: Reply) => {
      // With a callback, because without one nothing would handle the error of a child that is gone.
      if (child.connected) child.send?.(answer, () => undefined);
    };
    const hostReply = message.hostCall;
    invoke(host, message).then(
      (value) => reply({ hostReply, value }),
      (error: unknown) => reply({ hostReply, error: describe(error) }),
    );
  });
}

/** In the child: the same interface; each call becomes a message. */
export function remoteHost(parent: DriverChannel): HostCalls {
  const pending = new Map<number, Pending>();
  let last = 0;
  parent.on('message', (message) => {
    if (isReply(message)) conclude(pending, message);
  });
  parent.on('disconnect', () => {
    for (const { reject } of pending.values()) reject(new Error('the parent process is gone'));
    pending.clear();
  });
  const call = (method: HostMethod, args: readonly unknown[]): Promise<never> =>
    new Promise<never>((resolve, reject) => {
      if (!parent.connected || !parent.send) return reject(new Error('the parent process is gone'));
      const hostCall = ++last;
      pending.set(hostCall, { resolve: (value) => resolve(value as never), reject });
      const message: Call = { hostCall, method, args };
      parent.send(message, (error) => {
        if (error && pending.delete(hostCall)) reject(error);
      });
    });
  const calls = hostMethods.map((method) => [method, (...args: unknown[]) => call(method, args)] as const);
  return Object.fromEntries(calls) as Record<HostMethod, RemoteCall>;
}

/** Assignable to every method of `HostCalls`: the result has the type that the host's own method returns. */
type RemoteCall = (...args: unknown[]) => Promise<never>;

interface Pending {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

function conclude(pending: Map<number, Pending>, reply: Reply): void {
  const call = pending.get(reply.hostReply);
  if (!call) return;
  pending.delete(reply.hostReply);
  if ('error' in reply) call.reject(revive(reply.error));
  else call.resolve(reply.value);
}

/** The host checks every id and uid; an unknown method, or one that this child may not call, is refused. */
async function invoke(host: Partial<HostCalls>, call: Call): Promise<unknown> {
  const known = hostMethods.includes(call.method) ? host[call.method] : undefined;
  if (known === undefined) throw new Error(`no such call: ${String(call.method)}`);
  const method = known as (...args: unknown[]) => Promise<unknown>;
  return method.apply(host, [...call.args]);
}

function describe(thrown: unknown): SentError {
  if (!(thrown instanceof Error)) return { name: 'Error', message: String(thrown) };
  const { name, message } = thrown;
  return thrown instanceof CatnapError ? { name, message, kind: thrown.kind } : { name, message };
}

function revive({ name, message, kind }: SentError): Error {
  if (kind !== undefined) return new CatnapError(kind, message);
  if (name === 'NoSuchMomentError') return new NoSuchMomentError(message);
  if (name !== 'StaleGenerationError') return new Error(message);
  const error = new StaleGenerationError('', 0, 0);
  error.message = message;
  return error;
}

function isCall(message: unknown): message is Call {
  return isObject(message) && typeof message.hostCall === 'number' && Array.isArray(message.args);
}

function isReply(message: unknown): message is Reply {
  return isObject(message) && typeof message.hostReply === 'number';
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
