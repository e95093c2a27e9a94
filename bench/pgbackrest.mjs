/** For comparison with history: the same data in a bare server, archived and restored by pgBackRest. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chown, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { copyTemplate, prepareSocketDirectory, trusted } from './bare-postgres.mjs';
import { findProgram } from './pgbouncer.mjs';

const execute = promisify(execFile);
/** Postgres refuses root; any other uid will do. */
const uid = process.getuid() === 0 ? 65_534 : process.getuid();

/** Null where it is not installed. */
export const findPgBackRest = () => {
  const named = process.env.BENCH_PGBACKREST;
  return named ?? (process.getuid() === 0 ? findProgram('pgbackrest') : null);
};

/** A server with a repository beside it; both are in `folder`. */
export async function startPeer(build, folder) {
  const [data, sockets, repository, config] = ['data', 's', 'repository', 'pgbackrest.conf'].map((n) =>
    join(folder, n),
  );
  await mkdir(folder, { recursive: true });
  for (const path of [repository, join(folder, 'spool'), join(folder, 'log'), join(folder, 'lock')]) {
    await mkdir(path);
    await chown(path, uid, uid);
  }
  await chown(folder, uid, uid);
  await copyTemplate(build, data);
  await prepareSocketDirectory(sockets);
  await writeFile(
    config,
    [
      '[global]',
      `repo1-path=${repository}`,
      `log-path=${join(folder, 'log')}`,
      `lock-path=${join(folder, 'lock')}`,
      `spool-path=${join(folder, 'spool')}`,
      'start-fast=y',
      'process-max=2',
      'compress-type=lz4',
      '[main]',
      `pg1-path=${data}`,
      `pg1-socket-path=${sockets}`,
      `pg1-user=${trusted.user}`,
      `pg1-database=${trusted.database}`,
      '',
    ].join('\n'),
  );
  const program = findPgBackRest();
  const backRest = (...words) =>
    execute(program, [`--config=${config}`, '--stanza=main', ...words], { uid, gid: uid, cwd: '/' });
  const archive = `${program} --config=${config} --stanza=main archive-push %p`;
  let stop = await start(build, data, sockets, ['archive_mode=on', `archive_command=${archive}`]);
  await backRest('stanza-create');
  return {
    login: { host: sockets, ...trusted },
    backup: () => backRest('backup', '--type=full'),
    stop: () => stop(),
    /** From nothing to the first answer. */
    async restore(moment, statement) {
      await stop();
      const restored = join(folder, 'restored');
      await rm(restored, { recursive: true, force: true });
      await mkdir(restored, { mode: 0o700 });
      await chown(restored, uid, uid);
      const startedAt = performance.now();
      await backRest(
        `--pg1-path=${restored}`,
        '--type=time',
        `--target=${moment.replace('T', ' ').replace('Z', '+00')}`,
        '--target-action=promote',
        'restore',
      );
      stop = await start(build, restored, sockets, ['archive_mode=off'], statement);
      return performance.now() - startedAt;
    },
  };
}

async function start({ program }, data, sockets, settings, statement = 'select 1') {
  const all = ['listen_addresses=', `unix_socket_directories=${sockets}`, 'shared_buffers=128MB', ...settings];
  const words = [...all, 'huge_pages=off', 'jit=off', 'recovery_init_sync_method=syncfs'].flatMap((s) => ['-c', s]);
  const child = spawn(program, ['-D', data, ...words], { uid, gid: uid, stdio: 'ignore', cwd: '/' });
  const ended = once(child, 'exit');
  for (let isOver = false; !isOver; ) {
    const client = new pg.Client({ host: sockets, ...trusted });
    client.on('error', () => undefined);
    try {
      await client.connect();
      const { rows } = await client.query(`select pg_is_in_recovery() as recovers`);
      if (!rows[0].recovers) {
        await client.query(statement);
        isOver = true;
      }
    } catch {
      if (child.exitCode !== null) throw new Error(`the peer ended with exit code ${child.exitCode}`);
      await new Promise((resolve) => setTimeout(resolve, 5));
    } finally {
      await client.end().catch(() => undefined);
    }
  }
  return async () => {
    child.kill('SIGINT');
    await ended;
  };
}
