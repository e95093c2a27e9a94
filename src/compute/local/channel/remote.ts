/**
 * Calls from the worker, which has given up its privileges, to the host in the parent, over Node's own channel
 * between the two. The channel may carry other messages as well; what is not ours is left alone.
 */
import { CatnapError, type ErrorKind } from '../../../lib/errors.ts';
import { StaleGenerationError } from '../../interface/driver.ts';
import type { HostCalls } from './host-calls.ts';

/** A child process seen from its parent, or `process` seen from the child. */
export interface HostChannel {
  readonly connected?: boolean;
  send?(message: object, callback?: (error: Error | null) => void): boolean;
  on(event: 'message', listener: (message: unknown) => void): unknown;
  on(event: 'disconnect', listener: () => void): unknown;
}

const methods = [
  'prepare',
  'createBranch',
  'findParent',
  'beginLiveClone',
  'finishLiveClone',
  'abandonLiveClone',
  'findServer',
  'hasReplica',
  'claimReplica',
  'removeSlot',
  'openPrivateServer',
  'closePrivateServer',
  'removeBranch',
  'replaceBranch',
  'start',
  'inspect',
  'reload',
  'resize',
  'sample',
  'checkSettings',
  'forgetFirstSecret',
  'stop',
  'removeCompute',
  'removeProject',
  'list',
] as const satisfies readonly (keyof HostCalls)[];
type Method = (typeof methods)[number];

interface Call {
  readonly hostCall: number;
  readonly method: Method;
  readonly args: readonly unknown[];
}

type Reply =
  | { readonly hostReply: number; readonly value: unknown }
  | { readonly hostReply: number; readonly error: SentError }
  | { readonly hostReply: number; readonly progress: string };

interface SentError {
  readonly name: string;
  readonly message: string;
  readonly kind?: ErrorKind;
}

/** In the parent: answers the calls of one child. A call that the child does not live to hear of runs to its end. */
export function serveHost(host: Partial<HostCalls>, child: HostChannel): void {
  child.on('message', (message) => {
    if (!isCall(message)) return;
    const reply = (answer: Reply) => {
      // A callback, because a child that is gone is an error nobody else would handle.
      if (child.connected) child.send?.(answer, () => undefined);
    };
    const hostReply = message.hostCall;
    invoke(host, message, (progress) => reply({ hostReply, progress })).then(
      (value) => reply({ hostReply, value }),
      (error: unknown) => reply({ hostReply, error: describe(error) }),
    );
  });
}

/** In the child: the same interface, each call a message. */
export function remoteHost(parent: HostChannel): HostCalls {
  const pending = new Map<number, Pending>();
  let last = 0;
  parent.on('message', (message) => {
    if (isReply(message)) settle(pending, message);
  });
  parent.on('disconnect', () => {
    for (const { reject } of pending.values()) reject(new Error('the parent process is gone'));
    pending.clear();
  });
  const call = <T>(method: Method, args: readonly unknown[], progress?: (line: string) => void): Promise<T> =>
    new Promise<T>((resolve, reject) => {
      if (!parent.connected || !parent.send) return reject(new Error('the parent process is gone'));
      const hostCall = ++last;
      pending.set(hostCall, { resolve: (value) => resolve(value as T), reject, progress });
      const message: Call = { hostCall, method, args };
      parent.send(message, (error) => {
        if (error && pending.delete(hostCall)) reject(error);
      });
    });
  return {
    prepare: (pgVersion, progress) => call('prepare', [pgVersion], progress),
    createBranch: (spec) => call('createBranch', [spec]),
    findParent: (spec) => call('findParent', [spec]),
    beginLiveClone: (clone) => call('beginLiveClone', [clone]),
    finishLiveClone: (token, end) => call('finishLiveClone', [token, end]),
    abandonLiveClone: (token) => call('abandonLiveClone', [token]),
    findServer: (ref) => call('findServer', [ref]),
    hasReplica: (spec) => call('hasReplica', [spec]),
    claimReplica: (spec) => call('claimReplica', [spec]),
    removeSlot: (ref, slot) => call('removeSlot', [ref, slot]),
    openPrivateServer: (ref) => call('openPrivateServer', [ref]),
    closePrivateServer: (ref, kept) => call('closePrivateServer', [ref, kept]),
    removeBranch: (ref) => call('removeBranch', [ref]),
    replaceBranch: (ref, by) => call('replaceBranch', [ref, by]),
    start: (spec) => call('start', [spec]),
    inspect: (ref) => call('inspect', [ref]),
    reload: (spec) => call('reload', [spec]),
    resize: (ref, generation, limits) => call('resize', [ref, generation, limits]),
    sample: (refs) => call('sample', [refs]),
    checkSettings: (pgVersion, settings) => call('checkSettings', [pgVersion, settings]),
    forgetFirstSecret: (ref) => call('forgetFirstSecret', [ref]),
    stop: (ref, generation) => call('stop', [ref, generation]),
    removeCompute: (ref) => call('removeCompute', [ref]),
    removeProject: (ref) => call('removeProject', [ref]),
    list: () => call('list', []),
  };
}

interface Pending {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
  readonly progress: ((line: string) => void) | undefined;
}

function settle(pending: Map<number, Pending>, reply: Reply): void {
  const call = pending.get(reply.hostReply);
  if (!call) return;
  if ('progress' in reply) {
    call.progress?.(reply.progress);
    return;
  }
  pending.delete(reply.hostReply);
  if ('error' in reply) call.reject(revive(reply.error));
  else call.resolve(reply.value);
}

/** The host checks every id and uid that it is given; what is no method of it, or not for this child, is refused. */
async function invoke(host: Partial<HostCalls>, call: Call, progress: (line: string) => void): Promise<unknown> {
  const known = methods.includes(call.method) ? host[call.method] : undefined;
  if (known === undefined) throw new Error(`no such call: ${String(call.method)}`);
  const method = known as (...args: unknown[]) => Promise<unknown>;
  const args = call.method === 'prepare' ? [call.args[0], progress] : call.args;
  return method.apply(host, [...args]);
}

function describe(thrown: unknown): SentError {
  if (!(thrown instanceof Error)) return { name: 'Error', message: String(thrown) };
  const { name, message } = thrown;
  return thrown instanceof CatnapError ? { name, message, kind: thrown.kind } : { name, message };
}

function revive({ name, message, kind }: SentError): Error {
  if (kind !== undefined) return new CatnapError(kind, message);
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
