/** `import()` for scripts that a page loads when it first needs them: it outlasts outages and upgrades. */
import { isReachable } from './client.ts';
import { loadScriptIn } from './script-loader.ts';
import { offline } from './watched-flag.ts';

export function loadScript<T>(load: () => Promise<T>): Promise<T> {
  return loadScriptIn(
    {
      isReachable,
      setOffline: offline.set,
      reload: () => location.reload(),
      wait: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
      now: Date.now,
      memory: sessionStorage,
    },
    load,
  );
}
