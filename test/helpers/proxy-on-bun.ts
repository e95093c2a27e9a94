/**
 * A proxy in a process of its own that runs on Bun, for tests that otherwise start one in theirs. Whatever the proxy
 * was given that is a function stays with the test, and the process calls it from afar.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { chooseProxyRuntime } from '../../src/machine/proxy-runtime.ts';
import type { ProxyOptions, RunningProxy } from '../../src/proxy/listener.ts';
import { type Methods, speak } from './over-ipc.ts';

/** What a proxy may be given besides plain values. */
const parts = ['controlPlane', 'metrics', 'permits', 'log'] as const;
/** Their methods that take a listener. */
const listeners: readonly string[] = ['onChange', 'onReset', 'onAccessChange', 'onAnswer'];

export async function startProxyOnBun(options: ProxyOptions): Promise<RunningProxy> {
  const { program } = await chooseProxyRuntime('bun');
  const child = fork(new URL('proxy-process.ts', import.meta.url), [], {
    execPath: program ?? '',
    execArgv: ['--no-env-file', '--no-install'],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    env: { ...process.env, BUN_RUNTIME_TRANSPILER_CACHE_PATH: '0' },
  });
  const methods: Record<string, (...values: never[]) => unknown> = {};
  const offered: Record<string, string[]> = {};
  for (const part of parts) {
    const found = methodsOf(options[part]);
    if (options[part] === undefined) continue;
    offered[part] = Object.keys(found);
    for (const [name, method] of Object.entries(found)) {
      const key = `${part}.${name}`;
      methods[key] = listeners.includes(name)
        ? () => method((async (...values: unknown[]) => void call(`${key}!`, ...values)) as never)
        : returning(method, part === 'controlPlane' || name === 'scrape');
    }
  }
  const call = speak(child, methods);
  const plain = Object.fromEntries(Object.entries(options).filter(([name]) => !isPart(name)));
  try {
    const port = Number(await call('start', plain, { ...options.tls() }, offered));
    let closing: Promise<void> | undefined;
    const close = async () => {
      await call('close');
      child.disconnect();
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    };
    return {
      port,
      close: () => {
        closing ??= close();
        return closing;
      },
    };
  } catch (thrown) {
    child.kill();
    throw thrown;
  }
}

/** Elsewhere nobody waits for what a method returns, and it may be anything. */
function returning(method: Methods[string], isAwaited: boolean): Methods[string] {
  return isAwaited ? method : (...values) => void method(...values);
}

const isPart = (name: string) => [...parts, 'tls', 'clock'].some((part) => part === name);

function methodsOf(object: object | undefined): Methods {
  const found: Record<string, (...values: never[]) => unknown> = {};
  if (object === undefined) return found;
  const names = object.constructor === Object ? Object.keys(object) : ['debug', 'info', 'warn', 'error'];
  for (const name of names) {
    const method: unknown = Reflect.get(object, name);
    if (typeof method === 'function') found[name] = (...values) => method.apply(object, values);
  }
  return found;
}
