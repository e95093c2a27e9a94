/** Modules of src/ for scripts and benchmarks, which Node 20 does not run as TypeScript. */
import { mkdtempSync, rmSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { bundleServer, sourceFolder } from './bundle-server.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));

/** Returns the modules by name, such as `lib/errors`. All of one call share what they import. */
export async function loadSource(names) {
  // In the checkout, since packages that stay outside the bundle are looked for from there.
  const folder = mkdtempSync(`${root}dist.tools-`);
  try {
    const rootOf = () => JSON.stringify(pathToFileURL(sourceFolder).href);
    await bundleServer(names, folder, { format: 'esm', rootOf });
    const load = async (name) => [name, await import(pathToFileURL(`${folder}/${name}.js`).href)];
    return Object.fromEntries(await Promise.all(names.map(load)));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
