/**
 * The ways to install Catnap on the machine itself. Each installs into an empty folder and returns how large that is, how
 * Catnap is started there, and how its command is called.
 */
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { bytesBelow, printLine, run } from './kit.mjs';

const quiet = ['--no-audit', '--no-fund'];

export function installWithNpm({ folder, env, tarball }) {
  const cwd = join(folder, 'app');
  mkdirSync(cwd);
  // Otherwise npm looks for one in the folders above.
  writeFileSync(join(cwd, 'package.json'), '{}');
  run(['npm', 'install', ...quiet, tarball()], { cwd, env, show: true });
  const command = join(cwd, 'node_modules/.bin/catnap');
  return {
    size: () => printPackages(join(cwd, 'node_modules')),
    cwd,
    env,
    start: [command, 'up', '--stop-computes'],
    call: (...words) => [command, ...words],
  };
}

export function installGlobally({ folder, env, tarball }) {
  const prefix = join(folder, 'prefix');
  mkdirSync(prefix);
  run(['npm', 'install', '--global', '--prefix', prefix, ...quiet, tarball()], { cwd: folder, env, show: true });
  return {
    size: () => bytesBelow(prefix),
    cwd: folder,
    env: { ...env, PATH: `${join(prefix, 'bin')}:${env.PATH}` },
    start: ['catnap', 'up', '--stop-computes'],
    call: (...words) => ['catnap', ...words],
  };
}

export function installFromClone({ folder, env, root }) {
  const cwd = join(folder, 'clone');
  // The checkout may belong to another user, which git refuses unless a file of settings permits it.
  const settings = join(folder, 'gitconfig');
  writeFileSync(settings, '[safe]\n  directory = *\n');
  run(['git', 'clone', '--quiet', `file://${root}`, cwd], {
    cwd: folder,
    env: { ...env, GIT_CONFIG_GLOBAL: settings },
  });
  run(['npm', 'ci', ...quiet], { cwd, env, show: true });
  return {
    size: () => bytesBelow(cwd),
    cwd,
    env,
    start: ['npm', 'start', '--', '--stop-computes'],
    call: (...words) => ['npx', 'catnap', ...words],
  };
}

function printPackages(modules) {
  const names = readdirSync(modules).flatMap((name) =>
    name.startsWith('@') ? readdirSync(join(modules, name)).map((inner) => `${name}/${inner}`) : [name],
  );
  const sizes = names.map((name) => [name, bytesBelow(join(modules, name))]);
  const large = sizes.filter(([, bytes]) => bytes > 1e6).sort(([, one], [, other]) => other - one);
  for (const [name, bytes] of large) printLine(name, bytes);
  return bytesBelow(modules);
}
