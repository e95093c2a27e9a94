/**
 * Calls between a test and a process that it has started, over Node's channel. What goes over it is JSON, so values
 * that JSON does not know are marked.
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
  const answer = async ({ call, id, values }: Call) => {
    try {
      const method = methods[call];
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
  return (call, ...values) =>
    new Promise((resolve, reject) => {
      lastId += 1;
      waiting.set(lastId, { resolve, reject });
      send({ call, id: lastId, values: encode(values) });
    });
}

const isCall = (message: unknown): message is Call =>
  typeof message === 'object' && message !== null && 'call' in message;
const isAnswer = (message: unknown): message is Answer =>
  typeof message === 'object' && message !== null && 'answer' in message;

export function encode(value: unknown): unknown {
  if (value === undefined) return { $: 'undefined' };
  if (typeof value !== 'object' || value === null) return value;
  if (value instanceof Map) return { $: 'map', value: [...value].map(encode) };
  if (value instanceof Date) return { $: 'date', value: value.getTime() };
  if (value instanceof Uint8Array) return { $: 'bytes', value: Buffer.from(value).toString('base64') };
  if (value instanceof Error) {
    return { $: 'error', message: value.message, kind: value instanceof CatnapError ? value.kind : null };
  }
  if (Array.isArray(value)) return value.map(encode);
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, encode(one)]));
}

export function decode(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(decode);
  const marked = value as { $?: string; value?: unknown; message?: string; kind?: ErrorKind | null };
  if (marked.$ === 'undefined') return undefined;
  if (marked.$ === 'map') return new Map(decode(marked.value) as [unknown, unknown][]);
  if (marked.$ === 'date') return new Date(Number(marked.value));
  if (marked.$ === 'bytes') return Buffer.from(String(marked.value), 'base64');
  if (marked.$ === 'error') {
    const message = marked.message ?? '';
    return marked.kind == null ? new Error(message) : new CatnapError(marked.kind, message);
  }
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, decode(one)]));
}
