/** For comparison: the same binaries on a copy of the same template, started and queried with nothing in between. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chown, mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ask, selectOne } from './catnap.mjs';

const run = promisify(execFile);

/** Postgres refuses root; any other uid will do. */
const uid = process.getuid() === 0 ? 65_534 : process.getuid();

/** `root` is where templates are: in the image, where there is one. */
export async function findBuild(home, major = 17, root = home) {
  const [name] = await readdir(join(home, 'builds', String(major)));
  return {
    program: join(home, 'builds', String(major), name, 'bin', 'postgres'),
    template: join(root, 'templates', String(major), name, 'pgdata'),
  };
}

/** As quickly as the programs of the system do it: the blocks are shared where the filesystem can. */
export async function copyTemplate({ template }, directory) {
  await run('cp', ['-a', '--reflink=auto', template, directory]);
  if (process.getuid() === 0) await run('chown', ['-R', `${uid}:${uid}`, directory]);
  await writeFile(join(directory, 'pg_hba.conf'), 'local all bench scram-sha-256\nlocal all all trust\n');
}

/** A server that can be started in this home, beside Catnap's. */
export async function prepareBare(home) {
  const build = await findBuild(home);
  const [sockets, directory] = [join(home, 'bench-sockets'), join(home, 'bench-data')];
  await prepareSocketDirectory(sockets);
  await copyTemplate(build, directory);
  return { build, directory, sockets };
}

/** A login without a password, and one that proves its password as every client of Catnap does. */
export const trusted = { user: 'catnap_admin', database: 'catnap' };
export const proved = { user: 'bench', password: 'bench', database: 'catnap' };

/** Creates the role that logs in with a password; once for each copy of the template. */
export async function addPasswordLogin(build, directory, sockets) {
  const stop = await startBare(build, directory, sockets);
  const { user, password, database } = proved;
  const statements = `create role ${user} login password '${password}'; grant connect on database ${database} to ${user}`;
  await ask({ host: sockets, ...trusted }, statements);
  await stop();
}

export async function prepareSocketDirectory(path) {
  await mkdir(path, { recursive: true });
  await chown(path, uid, uid);
}

/** Resolves with a function that stops it, once it has answered. */
export async function startBare({ program }, directory, sockets, login = trusted) {
  const settings = [
    'listen_addresses=',
    `unix_socket_directories=${sockets}`,
    'shared_buffers=128MB',
    'max_connections=112',
  ];
  const options = [...settings, 'huge_pages=off', 'jit=off', 'recovery_init_sync_method=syncfs'].flatMap((s) => [
    '-c',
    s,
  ]);
  const child = spawn(program, ['-D', directory, ...options], { uid, gid: uid, stdio: 'ignore', cwd: '/' });
  for (;;) {
    try {
      await selectOne({ host: sockets, ...login });
      break;
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  }
  return async () => {
    child.kill('SIGINT');
    await once(child, 'exit');
  };
}
