/**
 * The built console in memory. The API process can no longer read the checkout when it serves requests, so the files
 * are read while it loads; a build that is replaced meanwhile is never served half old, half new.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export interface ConsoleFile {
  readonly type: string;
  readonly body: Buffer;
  /** The same, compressed by the build; by the name of the encoding, the smallest first. */
  readonly encoded: readonly (readonly [encoding: string, body: Buffer])[];
}

export interface ConsoleFiles {
  /** The page that every path of the console gets. */
  readonly page: string;
  /** By name; names hold a hash of the content. */
  readonly assets: ReadonlyMap<string, ConsoleFile>;
}

/** For a program that was built without a console. */
export const noConsole: ConsoleFiles = {
  page: '<!doctype html><html lang="en"><title>Catnap</title><p>The console is not built: run <code>npm run build</code>.',
  assets: new Map(),
};

const types: Readonly<Record<string, string>> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
};

/** Browsers take the first one over https and from this machine alone, and the other one from everywhere. */
const encodings = [
  ['br', '.br'],
  ['gzip', '.gz'],
] as const;

export function readConsoleFiles(directory: URL): ConsoleFiles {
  try {
    const page = readFileSync(new URL('index.html', directory), 'utf8');
    const folder = new URL('assets/', directory);
    const names = readdirSync(fileURLToPath(folder));
    const assets = names.flatMap((name) => {
      const type = types[name.split('.').at(-1) ?? ''];
      if (type === undefined) return [];
      const read = (file: string) => readFileSync(new URL(file, folder));
      const encoded = encodings
        .filter(([, ending]) => names.includes(name + ending))
        .map(([encoding, ending]) => [encoding, read(name + ending)] as const);
      return [[name, { type, body: read(name), encoded }] as const];
    });
    return { page, assets: new Map(assets) };
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return noConsole;
    throw error;
  }
}
