/**
 * Bundles src/ with what it imports from npm. A process of Catnap then loads a handful of files at its start and not a
 * thousand, which is most of the time that a start takes. Files that are read at run time are found as from the source:
 * `import.meta.url` stays that of the module, below the root that the caller names.
 */
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';

export const sourceFolder = fileURLToPath(new URL('../src/', import.meta.url));

/** These bring files of their own, which they look for beside themselves. */
const keptOutside = [/^@node-rs\/argon2/];

/**
 * `entries` are modules below src/, without their extension. `format` is `esm`, or `cjs` for what is loaded with code
 * caches. `rootOf` returns, for a folder of the bundle, the text of an expression: the URL below which modules are
 * taken to be. Returns the ids of all modules in the bundle.
 */
export async function bundleServer(entries, target, { format, rootOf }) {
  const bundle = await rolldown({
    input: Object.fromEntries(entries.map((name) => [name, `${sourceFolder}${name}.ts`])),
    platform: 'node',
    external: keptOutside,
    plugins: [{ name: 'module-urls', transform: keepModuleUrl }],
    // Libraries are bundled as they are; what is odd in them is not ours to mend.
    checks: { eval: false },
  });
  const { output } = await bundle.write({
    dir: target,
    format,
    sourcemap: true,
    entryFileNames: '[name].js',
    chunkFileNames: 'chunks/[name]-[hash].js',
    banner: ({ fileName }) => `'use strict';\nconst moduleRoot = ${rootOf(fileName.replace(/[^/]+$/, ''))};`,
  });
  await bundle.close();
  return output.flatMap((file) => (file.type === 'chunk' ? file.moduleIds : []));
}

function keepModuleUrl(code, id) {
  if (!id.startsWith(sourceFolder) || !code.includes('import.meta.url')) return null;
  const path = relative(sourceFolder, id).replace(/\.ts$/, '.js');
  return { code: code.replaceAll('import.meta.url', `new URL(${JSON.stringify(path)}, moduleRoot).href`), map: null };
}
