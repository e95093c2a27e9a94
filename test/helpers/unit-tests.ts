/**
 * Which test files need no server: those that take nothing of what the run starts for all of them
 * (`postgres-global.ts`), neither themselves nor through a helper. Found by following imports, so that no list of them
 * has to be kept.
 */
import { readSources, type SourceFile } from './source-files.ts';

/** `inject` hands a test file what the run has started: the system database, the binaries of Postgres. */
const takesFromRun = /^import \{[^}]*\binject\b[^}]*\} from 'vitest';/m;

export function findUnitTests(files: readonly SourceFile[] = readSources(['src', 'test'])): string[] {
  const byPath = new Map(files.map((file) => [file.path, file]));
  return files.filter((file) => file.isTest && !needsServer(file, byPath)).map((file) => file.path);
}

function needsServer(file: SourceFile, byPath: ReadonlyMap<string, SourceFile>): boolean {
  const seen = new Set([file]);
  for (const next of seen) {
    if (takesFromRun.test(next.text)) return true;
    for (const name of next.imports) {
      const imported = byPath.get(name);
      if (imported !== undefined) seen.add(imported);
    }
  }
  return false;
}
