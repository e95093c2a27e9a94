/** The way in a container: an image is built of the package with podman, without what earlier builds have left. */
import { copyFileSync, cpSync } from 'node:fs';
import { join } from 'node:path';
import { run } from './kit.mjs';

export function buildImage({ folder, env, root, tarball, build, ports }) {
  // podman keeps its own state in the home of its user.
  const at = { cwd: folder, env: { ...env, HOME: process.env.HOME } };
  const context = join(folder, 'container');
  cpSync(join(root, 'container'), context, { recursive: true });
  copyFileSync(tarball(), join(context, 'catnap.tgz'));
  const name = `catnap-installs-${process.pid}`;
  const words = ['--format', 'docker', '--no-cache', '--layers=false', '--force-rm', '--tag', name, ...build];
  run(['podman', 'build', ...words, context], { ...at, show: true });
  const flags = ['--rm', '--name', name, '--shm-size=1g', '--stop-timeout=60'];
  for (const port of ports) flags.push('--publish', `127.0.0.1:${port}:${port}`);
  for (const setting of ['CATNAP_HTTP_PORT', 'CATNAP_PG_PORT']) flags.push('--env', setting);
  return {
    size: () => Number(run(['podman', 'image', 'inspect', '--format', '{{.Size}}', name], at)),
    ...at,
    start: ['podman', 'run', ...flags, name],
    call: (...words) => ['podman', 'exec', name, 'catnap', ...words],
    remove: () => run(['podman', 'rmi', '--force', name], at),
  };
}
