/**
 * The built console in memory. The API process can no longer read the checkout when it serves requests, so the files
 * are read while it loads; a build that is replaced meanwhile is never served half old, half new.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export interface ConsoleFile {
  readonly type: string;
  readonly body: Buffer;
  /** The same, compressed by the build. */
  readonly brotli: Buffer | null;
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

export function readConsoleFiles(directory: URL): ConsoleFiles {
  try {
    const page = readFileSync(new URL('index.html', directory), 'utf8');
    const folder = new URL('assets/', directory);
    const names = readdirSync(fileURLToPath(folder));
    const assets = names.flatMap((name) => {
      const type = types[name.split('.').at(-1) ?? ''];
      if (type === undefined) return [];
      const brotli = names.includes(`${name}.br`) ? readFileSync(new URL(`${name}.br`, folder)) : null;
      return [[name, { type, body: readFileSync(new URL(name, folder)), brotli }] as const];
    });
    return { page, assets: new Map(assets) };
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return noConsole;
    throw error;
  }
}
