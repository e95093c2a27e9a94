/**
 * Asks the dynamic loader whether a library would load into a Postgres on this machine. The loader resolves libraries,
 * versions and symbols of both as it would for a server, prints what it found, and ends before any code of them runs.
 */
import { basename, dirname } from 'node:path';
import { errorText } from '../../../../lib/errors.ts';
import { runProgram } from '../../../../lib/run-program.ts';

/** What the loader is told by its manual page, `ld.so(8)`: to list; then also to resolve at once and say what fails. */
const listing = { LD_TRACE_LOADED_OBJECTS: '1' };
const resolving = { ...listing, LD_BIND_NOW: '1', LD_WARN: '1' };

/**
 * Null, or why it would not load, in words for people. `program` is the Postgres that would load it. The list comes
 * first: on x86-64 the loader ends with SIGSEGV when it resolves symbols of a library that lacks another one.
 */
export async function whyNotLoadable(program: string, library: string): Promise<string | null> {
  const name = basename(library);
  for (const told of [listing, resolving]) {
    // By a relative path: the variable cannot hold a path with a space or a colon.
    const environment = { ...told, LD_PRELOAD: `./${name}` };
    const output = await runProgram(program, [], { cwd: dirname(library), environment }).catch(errorText);
    const found = complaint(output, name);
    if (found !== null) return found;
  }
  return null;
}

/** Pure: reads what the loader printed. */
export function complaint(output: string, library: string): string | null {
  const name = library.replaceAll(/[.+*?^$()[\]{}|\\]/g, '\\$&');
  const refused = new RegExp(`ld\\.so: object '\\./${name}' .*cannot be preloaded(?: \\(([^)]*)\\))?`).exec(output);
  if (refused) return `its library ${library} cannot be loaded: ${refused[1] ?? 'the loader refuses it'}`;
  const versions = unique(output, new RegExp(`version \`([^']+)' not found \\(required by \\./${name}\\)`, 'g'));
  const needs = [...unique(output, /^\s*(\S+) => not found$/gm), ...versions.sort()];
  if (needs.length > 0) {
    const own = versions.some((version) => version.startsWith('GLIBC_')) ? `: its C library is ${cLibrary()}` : '';
    return `its library needs ${needs.join(', ')}, which this machine does not have${own}`;
  }
  const symbols = unique(output, new RegExp(`undefined symbol: (\\w+).*\\(\\./${name}\\)`, 'g'));
  if (symbols.length > 0)
    return `its library needs ${symbols.slice(0, 3).join(', ')}, which this Postgres does not have`;
  return output.includes(`./${library} (`) ? null : `the loader did not find its library ${library}`;
}

function unique(text: string, pattern: RegExp): string[] {
  return [...new Set([...text.matchAll(pattern)].map((match) => match[1] ?? ''))];
}

/** Node knows the C library that it runs on. */
function cLibrary(): string {
  const report = process.report.getReport() as { header?: { glibcVersionRuntime?: string } };
  return report.header?.glibcVersionRuntime ?? 'another one';
}
