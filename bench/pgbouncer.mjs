/** For comparison with the proxy: PgBouncer in front of an equal server, with the same pool size and certificate. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmod, chown, mkdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freePort, selectOne } from './catnap.mjs';

/** Debian installs PgBouncer in a directory that is not in every user's path. */
export const programs = { PATH: `${process.env.PATH}:/usr/sbin:/usr/local/sbin` };

/** Another PgBouncer than the one in the path: newer ones also pool prepared statements. */
const given = { pgbouncer: process.env.BENCH_PGBOUNCER };

/** Runs `--version`: Debian installs a wrapper of that name even without the program. */
export function findProgram(wanted) {
  const name = given[wanted] ?? wanted;
  const found = spawnSync('sh', ['-c', `${name} --version >&2 && command -v ${name}`], {
    env: programs,
    encoding: 'utf8',
  });
  return found.status === 0 ? found.stdout.trim() : null;
}

/** `mode` is session or transaction. Runs as the owner of the server's socket, whose directory is closed to others. */
export async function startPgBouncer({ mode, tls, directory, socket, login, poolSize, certificate }) {
  const { uid, gid } = await stat(socket);
  await mkdir(directory, { recursive: true });
  const port = await freePort();
  const lines = [
    '[databases]',
    `* = host=${socket}`,
    '[pgbouncer]',
    'listen_addr = 127.0.0.1',
    `listen_port = ${port}`,
    'unix_socket_dir =',
    'auth_type = scram-sha-256',
    `auth_file = ${join(directory, 'users')}`,
    `pool_mode = ${mode}`,
    `default_pool_size = ${poolSize}`,
    'max_client_conn = 20000',
    'ignore_startup_parameters = extra_float_digits,options',
    'log_connections = 0',
    'log_disconnections = 0',
    ...(tls
      ? [
          'client_tls_sslmode = require',
          `client_tls_key_file = ${join(directory, 'pem')}`,
          `client_tls_cert_file = ${join(directory, 'pem')}`,
        ]
      : []),
  ];
  const files = { ini: lines.join('\n'), users: `"${login.user}" "${login.password}"\n`, pem: certificate };
  for (const [name, text] of Object.entries(files)) await writeFile(join(directory, name), text);
  if (process.getuid() === 0) {
    for (const name of ['', ...Object.keys(files)]) await chown(join(directory, name), uid, gid);
  }
  for (const name of Object.keys(files)) await chmod(join(directory, name), 0o600);
  const child = spawn(findProgram('pgbouncer'), ['-q', join(directory, 'ini')], {
    ...(process.getuid() === 0 ? { uid, gid } : {}),
    stdio: ['ignore', 'ignore', process.env.BENCH_DEBUG ? 'inherit' : 'ignore'],
  });
  const ssl = tls ? { rejectUnauthorized: false } : false;
  const giveUpAt = Date.now() + 10_000;
  for (;;) {
    try {
      await selectOne({ host: '127.0.0.1', port: Number(port), ...login, ssl });
      break;
    } catch (error) {
      if (child.exitCode !== null || Date.now() > giveUpAt)
        throw new Error(`pgbouncer does not answer: ${error.message}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
  return {
    port,
    pid: child.pid,
    stop: async () => {
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
  };
}

export function bouncerVersion() {
  const { stdout } = spawnSync(findProgram('pgbouncer'), ['--version'], { encoding: 'utf8' });
  const [, major = 0, minor = 0] = /PgBouncer (\d+)\.(\d+)/.exec(stdout) ?? [];
  return Number(major) + Number(minor) / 100;
}
