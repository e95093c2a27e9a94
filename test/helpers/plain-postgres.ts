/** A Postgres that has nothing to do with Catnap but its binaries: with a superuser, a password and a port. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { inject } from 'vitest';
import { ensureBuild } from '../../src/compute/local/host/postgres/builds.ts';
import { withNewCluster } from '../../src/compute/local/host/postgres/cluster.ts';
import { buildVerifier } from '../../src/lib/scram-verifier.ts';
import { ensureHome } from '../../src/machine/home.ts';
import { eventually } from './eventually.ts';
import { freePort } from './free-ports.ts';
import { ask } from './query.ts';
import { makeTempHome } from './temp-home.ts';

export interface PlainPostgres {
  /** As the superuser `postgres`, unless somebody else is named. */
  url(database?: string, as?: { readonly name: string; readonly password: string }): string;
  stop(): Promise<void>;
}

interface PlainOptions {
  /** Data that is there already, and who gets in. */
  readonly dataDirectory?: string;
  readonly login?: { readonly name: string; readonly password: string };
  readonly settings?: Readonly<Record<string, string>>;
  /** The directory of other binaries than the embedded ones. */
  readonly bin?: string | undefined;
}

const password = 'plain secret';
/** Postgres refuses root, and does not care who else it is. */
const uid = process.getuid?.() === 0 ? 65_534 : null;

export async function startPlainPostgres(
  major: number,
  { dataDirectory, login = { name: 'postgres', password }, settings = {}, bin }: PlainOptions = {},
): Promise<PlainPostgres> {
  const home = await makeTempHome({ share: inject('sharedBuildsHome') });
  const layout = await ensureHome(home.config);
  const pgBin = bin === undefined ? {} : { [major]: bin };
  const build = await ensureBuild(major, { pgBin }, layout);
  await chmod(home.path, 0o711);
  const directory = dataDirectory ?? join(home.path, 'plain');
  if (dataDirectory === undefined) {
    const statements = [`ALTER ROLE postgres PASSWORD '${buildVerifier(password)}'`];
    const spec = { build, superuser: 'postgres', uid, statements };
    await withNewCluster(spec, home.path, (made) => rename(made, directory));
    await writeFile(join(directory, 'pg_hba.conf'), 'host all all 127.0.0.1/32 scram-sha-256\n');
  }
  const port = await freePort();
  const given = { port, listen_addresses: '127.0.0.1', unix_socket_directories: '', fsync: 'off', ...settings };
  const options = Object.entries(given).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const server = spawn(join(build.bin, 'postgres'), ['-D', directory, ...options], {
    stdio: 'ignore',
    ...(uid !== null && { uid, gid: uid }),
  });
  const url: PlainPostgres['url'] = (database = 'postgres', as = login) =>
    `postgresql://${as.name}:${encodeURIComponent(as.password)}@127.0.0.1:${port}/${database}`;
  const ended = once(server, 'exit');
  await Promise.race([
    eventually(() => ask(url(), 'SELECT 1')),
    ended.then(([code]) => Promise.reject(new Error(`the server has ended with ${code}`))),
  ]);
  return {
    url,
    stop: async () => {
      server.kill('SIGINT');
      await ended;
      await home.remove();
    },
  };
}
