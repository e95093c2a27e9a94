/**
 * Calls between a test and a process that it has started, over Node's channel. What goes over it is JSON, so values
 * that JSON does not know are marked. A function stays where it is and is called from the other side; a signal aborts
 * on both.
 */
import { CatnapError, type ErrorKind } from '../../src/lib/errors.ts';
import type { ChannelEnd } from '../../src/processes/channel/channel.ts';

type Method = (...values: never[]) => unknown;
export type Methods = Readonly<Record<string, Method>>;

interface Call {
  readonly call: string;
  readonly id: number;
  readonly values: unknown;
}

interface Answer {
  readonly answer: number;
  readonly value?: unknown;
  readonly error?: unknown;
}

/** Calls a method of the other side. */
export type Remote = (method: string, ...values: unknown[]) => Promise<unknown>;

export function speak(end: ChannelEnd, methods: Methods): Remote {
  const waiting = new Map<number, { resolve(value: unknown): void; reject(error: unknown): void }>();
  let lastId = 0;
  const send = (message: object) => {
    if (end.connected) end.send?.(message, () => {});
  };
  const call: Remote = (method, ...values) =>
    new Promise((resolve, reject) => {
      lastId += 1;
      waiting.set(lastId, { resolve, reject });
      send({ call: method, id: lastId, values: encode(values) });
    });
  const { encode, decode, lent } = createCodec(call);
  const answer = async ({ call, id, values }: Call) => {
    try {
      const method = methods[call] ?? lent.get(call);
      if (method === undefined) throw new Error(`no method ${call}`);
      send({ answer: id, value: encode(await method(...(decode(values) as never[]))) });
    } catch (thrown) {
      send({ answer: id, error: encode(thrown) });
    }
  };
  end.on('message', (message) => {
    if (isCall(message)) return void answer(message);
    if (!isAnswer(message)) return;
    const waiter = waiting.get(message.answer);
    waiting.delete(message.answer);
    if (message.error === undefined) waiter?.resolve(decode(message.value));
    else waiter?.reject(decode(message.error));
  });
  return call;
}

const isCall = (message: unknown): message is Call =>
  typeof message === 'object' && message !== null && 'call' in message;
const isAnswer = (message: unknown): message is Answer =>
  typeof message === 'object' && message !== null && 'answer' in message;

interface Marked {
  readonly $?: string;
  readonly value?: unknown;
  readonly name?: string;
  readonly message?: string;
  readonly kind?: ErrorKind | null;
}

function createCodec(call: Remote) {
  /** Functions that the other side may call, by the names under which it knows them. */
  const lent = new Map<string, Method>();
  const lend = (method: Method): string => {
    const name = `lent ${lent.size + 1}`;
    lent.set(name, method);
    return name;
  };

  function encode(value: unknown): unknown {
    if (value === undefined) return { $: 'undefined' };
    if (typeof value === 'function') return { $: 'function', value: lend(value as Method) };
    if (typeof value !== 'object' || value === null) return value;
    if (value instanceof Map) return { $: 'map', value: [...value].map(encode) };
    if (value instanceof Date) return { $: 'date', value: value.getTime() };
    if (value instanceof Uint8Array) return { $: 'bytes', value: Buffer.from(value).toString('base64') };
    if (value instanceof AbortSignal) return { $: 'signal', value: lend(() => aborted(value)) };
    if (value instanceof Error) {
      const kind = value instanceof CatnapError ? value.kind : null;
      return { $: 'error', name: value.name, message: value.message, kind };
    }
    if (Array.isArray(value)) return value.map(encode);
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, encode(one)]));
  }

  function decode(value: unknown): unknown {
    if (typeof value !== 'object' || value === null) return value;
    if (Array.isArray(value)) return value.map(decode);
    const marked: Marked = value;
    if (marked.$ === 'undefined') return undefined;
    if (marked.$ === 'function') return (...values: unknown[]) => call(String(marked.value), ...values);
    if (marked.$ === 'map') return new Map(decode(marked.value) as [unknown, unknown][]);
    if (marked.$ === 'date') return new Date(Number(marked.value));
    if (marked.$ === 'bytes') return Buffer.from(String(marked.value), 'base64');
    if (marked.$ === 'signal') return signalOf(call(String(marked.value)));
    if (marked.$ === 'error') return errorOf(marked);
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, decode(one)]));
  }

  return { encode, decode, lent };
}

/** Resolves with the reason. */
function aborted(signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(signal.reason);
    signal.addEventListener('abort', () => resolve(signal.reason), { once: true });
  });
}

function signalOf(abortion: Promise<unknown>): AbortSignal {
  const controller = new AbortController();
  void abortion.then((reason) => controller.abort(reason));
  return controller.signal;
}

function errorOf({ name = 'Error', message = '', kind }: Marked): Error {
  const error = kind == null ? new Error(message) : new CatnapError(kind, message);
  error.name = name;
  return error;
}
