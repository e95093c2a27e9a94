/** The other end of `proxy-on-bun.ts`: the proxy, and stand-ins for what has stayed with the test. */
import { systemClock } from '../../src/lib/clock.ts';
import { createLogger } from '../../src/lib/log.ts';
import { type ProxyOptions, type RunningProxy, startProxy } from '../../src/proxy/listener.ts';
import { speak } from './over-ipc.ts';

let running: RunningProxy | undefined;
const listeners = new Map<string, ((...values: unknown[]) => void)[]>();
/** Filled as listeners come; the object is the one that `speak` looks them up in. */
const methods: Record<string, (...values: never[]) => unknown> = {
  start: async (plain: object, tls: ReturnType<ProxyOptions['tls']>, offered: Record<string, string[]>) => {
    const parts = Object.fromEntries(Object.entries(offered).map(([part, names]) => [part, standIn(part, names)]));
    const log = createLogger({ level: 'silent', process: 'proxy' });
    const options = { log, clock: systemClock, ...plain, ...parts, tls: () => tls };
    running = await startProxy(options as unknown as ProxyOptions);
    return running.port;
  },
  close: () => running?.close(),
};
const call = speak(process, methods);
process.on('disconnect', () => process.exit(0));

function standIn(part: string, names: readonly string[]): object {
  return Object.fromEntries(names.map((name) => [name, remoteMethod(`${part}.${name}`)]));
}

function remoteMethod(key: string) {
  return (...values: unknown[]) => {
    const [first] = values;
    if (typeof first !== 'function') return call(key, ...values);
    const known = listeners.get(key) ?? [];
    listeners.set(key, [...known, first as (...values: unknown[]) => void]);
    methods[`${key}!`] = (...told: unknown[]) => {
      for (const listener of listeners.get(key) ?? []) listener(...told);
    };
    // Once: with a second one over there, everybody here would be told twice.
    if (known.length === 0) void call(key).catch(() => {});
  };
}
