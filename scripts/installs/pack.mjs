/** Builds and packs the checkout, and prints what is in the package. */
import { join } from 'node:path';
import { megabytes, printLine, run } from './kit.mjs';

export function pack(root, folder) {
  const at = { cwd: root, env: process.env };
  run([process.execPath, join(root, 'scripts/build.mjs')], { ...at, show: true });
  // It is built; what npm prints of scripts would be in between.
  const words = ['pack', '--json', '--ignore-scripts', '--pack-destination', folder];
  const [packed] = JSON.parse(run(['npm', ...words], at));
  const { filename, size, unpackedSize, files } = packed;
  console.log(`${filename}: ${megabytes(size)}, unpacked ${megabytes(unpackedSize)} in ${files.length} files:`);
  const sums = new Map();
  for (const file of files) sums.set(partOf(file), (sums.get(partOf(file)) ?? 0) + file.size);
  for (const [part, bytes] of [...sums].sort(([, one], [, other]) => other - one)) printLine(part, bytes);
  return join(folder, filename);
}

function partOf({ path }) {
  return path
    .split('/')
    .slice(0, path.startsWith('dist/') ? 2 : 1)
    .join('/');
}
