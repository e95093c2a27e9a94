/**
 * Builds console/ with Vite into a folder of dist/, with each file compressed beside it. A console that was built from
 * the very same files before is taken over, which makes most builds as quick as without one.
 */
import { createHash } from 'node:crypto';
import { cpSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { packageFoldersOf } from './third-party.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const source = join(root, 'console');
const fingerprintName = '.built-from';
const packagesName = '.packages.json';

/** What pages with long lists need. */
const virtualLists = { name: 'virtual-lists', test: /node_modules\/@tanstack\/(react-virtual|virtual-core)\// };
/** What every page needs, apart from our own script: it changes less often and stays in the browser's cache. */
const libraries = { name: 'libraries', test: /node_modules\/(react|react-dom|scheduler|@tanstack)\// };
/** What the SQL editor and what runs its text both need; no other page loads it. */
const editorLibraries = { name: 'editor-libraries', test: /node_modules\/(codemirror|@codemirror|@lezer)\// };

/** Returns the folders of the packages that are in it. */
export async function buildConsole(target, previous) {
  const fingerprint = fingerprintOf([
    ...filesBelow(source),
    join(root, 'package-lock.json'),
    fileURLToPath(import.meta.url),
  ]);
  if (readIfThere(join(previous, fingerprintName)) === fingerprint) {
    cpSync(previous, target, { recursive: true });
    return JSON.parse(readFileSync(join(target, packagesName), 'utf8'));
  }
  const { build } = await import('vite');
  const { default: react } = await import('@vitejs/plugin-react');
  const { output } = await build({
    root: source,
    configFile: false,
    logLevel: 'error',
    plugins: [react()],
    build: {
      outDir: target,
      emptyOutDir: true,
      target: 'es2022',
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
      rolldownOptions: { output: { codeSplitting: { groups: [virtualLists, libraries, editorLibraries] } } },
    },
  });
  for (const file of filesBelow(join(target, 'assets'))) {
    const content = readFileSync(file);
    writeFileSync(`${file}.br`, brotliCompressSync(content));
    writeFileSync(`${file}.gz`, gzipSync(content, { level: 9 }));
  }
  const packages = packageFoldersOf(output.flatMap((file) => (file.type === 'chunk' ? file.moduleIds : [])));
  writeFileSync(join(target, packagesName), JSON.stringify(packages));
  writeFileSync(join(target, fingerprintName), fingerprint);
  return packages;
}

function fingerprintOf(files) {
  const hash = createHash('sha256');
  for (const file of files.sort())
    hash.update(file.slice(root.length)).update('\0').update(readFileSync(file)).update('\0');
  return hash.digest('hex');
}

function filesBelow(folder) {
  const entries = readdirSync(folder, { withFileTypes: true, recursive: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

function readIfThere(path) {
  return existsSync(path) ? readFileSync(path, 'utf8') : null;
}
