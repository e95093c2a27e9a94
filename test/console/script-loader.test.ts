/** How a page gets a script that it needs for the first time: during an outage, and after an upgrade. */
import { expect, test } from 'vitest';
import { loadScriptIn, type Surroundings } from '../../console/api/script-loader.ts';

interface World extends Surroundings {
  readonly seen: string[];
  readonly kept: Map<string, string>;
}

/** `answers` are those of the server to the question whether it is there, one after the other. */
function world(answers: boolean[], kept = new Map<string, string>(), time = 1_000): World {
  const seen: string[] = [];
  return {
    seen,
    kept,
    isReachable: async () => answers.shift() ?? true,
    setOffline: (value) => void seen.push(value ? 'offline' : 'online'),
    reload: () => void seen.push('reload'),
    wait: async () => void seen.push('wait'),
    now: () => time,
    memory: {
      getItem: (name) => kept.get(name) ?? null,
      setItem: (name, value) => void kept.set(name, value),
    },
  };
}

/** Fails so many times, then gives the script. */
function failing(times: number) {
  let asked = 0;
  return async () => {
    asked += 1;
    if (asked <= times) throw new TypeError('Failed to fetch dynamically imported module: /assets/keys-1.js');
    return 'the script';
  };
}

test('a script that is there is loaded, and nothing else happens', async () => {
  const around = world([]);
  expect(await loadScriptIn(around, failing(0))).toBe('the script');
  expect(around.seen).toEqual([]);
});

test('while the server is away a script is asked for every second, and the page says so', async () => {
  const around = world([false, false, false]);
  expect(await loadScriptIn(around, failing(3))).toBe('the script');
  expect(around.seen).toEqual(['offline', 'wait', 'offline', 'wait', 'offline', 'wait', 'online']);
});

test('a server that comes back between two questions gets another one', async () => {
  const around = world([false, true]);
  expect(await loadScriptIn(around, failing(2))).toBe('the script');
  expect(around.seen).not.toContain('reload');
});

test('a script that the server does not have makes the page load anew, once', async () => {
  const kept = new Map<string, string>();
  const first = world([true], kept);
  void loadScriptIn(first, failing(Number.POSITIVE_INFINITY));
  await expect.poll(() => first.seen).toEqual(['reload']);
  const second = world([true], kept);
  await expect(loadScriptIn(second, failing(Number.POSITIVE_INFINITY))).rejects.toThrow('Reload the page.');
  expect(second.seen).toEqual([]);
});

test('a reload that helped may be repeated later', async () => {
  const kept = new Map<string, string>();
  void loadScriptIn(world([true], kept), failing(1));
  await expect.poll(() => kept.size).toBe(1);
  const later = world([true], kept, 100_000);
  void loadScriptIn(later, failing(1));
  await expect.poll(() => later.seen).toEqual(['reload']);
});
