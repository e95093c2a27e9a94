/**
 * Loads the files of the built program together with their code caches. To compile the program is a third of the
 * processor time that a start takes, and V8 can keep the result: `scripts/make-code-caches.mjs` writes one file for
 * each that it was made from. V8 refuses a cache of another version or of other flags, and then compiles as usual.
 */
import { closeSync, openSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Script } from 'node:vm';

type Load = (name: string) => unknown;

const root = fileURLToPath(new URL('../', import.meta.url));

export const cachePathOf = (path: string) => `${path}.cache`;

/** Returns a function that loads modules by their place in the program, such as `processes/child`. */
export function createLoader(onCompiled: (path: string, script: Script) => void = () => {}): Load {
  const outside = createRequire(join(root, 'bin.js'));
  const modules = new Map<string, { exports: unknown }>();

  function loadFile(path: string): unknown {
    const known = modules.get(path);
    if (known !== undefined) return known.exports;
    const module = { exports: {} };
    modules.set(path, module);
    const folder = dirname(path);
    const inside = (name: string) => (name.startsWith('.') ? loadFile(join(folder, name)) : outside(name));
    const script = compile(path);
    onCompiled(path, script);
    script.runInThisContext()(module.exports, Object.assign(inside, outside), module, path, folder);
    return module.exports;
  }

  return (name) => loadFile(join(root, `program/${name}.js`));
}

/** For the files that a process is started with. Bun has a loader and caches of its own. */
export function loadProgram(name: string): unknown {
  if (process.versions.bun !== undefined) return createRequire(join(root, 'bin.js'))(`./program/${name}.js`);
  return createLoader()(name);
}

/**
 * For what a process may need once it has given up the right to read the program: opens its file now, and returns a
 * function that loads the module. The file needs no other of the program (`apart` in `scripts/build.mjs`).
 */
export function holdProgram<Module>(name: string): () => Module {
  const path = join(root, `program/${name}.js`);
  const files = { text: openSync(path, 'r'), cache: openCache(path) };
  let exports: Module | undefined;
  return () => {
    exports ??= loadHeld<Module>(path, files);
    return exports;
  };
}

interface HeldFiles {
  readonly text: number;
  readonly cache: number | undefined;
}

function loadHeld<Module>(path: string, { text, cache }: HeldFiles): Module {
  const cached = cache === undefined ? undefined : readFileSync(cache);
  const script = compileText(path, readFileSync(text, 'utf8'), cached);
  closeSync(text);
  if (cache !== undefined) closeSync(cache);
  const module = { exports: {} };
  const outside = createRequire(join(root, 'bin.js'));
  script.runInThisContext()(module.exports, outside, module, path, dirname(path));
  return module.exports as Module;
}

function openCache(path: string): number | undefined {
  try {
    return openSync(cachePathOf(path), 'r');
  } catch {
    return undefined;
  }
}

function compile(path: string): Script {
  return compileText(path, readFileSync(path, 'utf8'), readCache(path));
}

function compileText(path: string, text: string, cachedData: Buffer | undefined): Script {
  return new Script(`(function (exports, require, module, __filename, __dirname) {${text}\n})`, {
    filename: path,
    ...(cachedData !== undefined && { cachedData }),
  });
}

function readCache(path: string): Buffer | undefined {
  try {
    return readFileSync(cachePathOf(path));
  } catch {
    return undefined;
  }
}
