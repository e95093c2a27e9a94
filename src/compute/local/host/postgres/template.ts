/**
 * The cluster that every new project is cloned from: one per build, made once. It holds Catnap's login with a secret
 * that only the parent reads; a project replaces that secret with its own before its first route opens.
 */

import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { newSecret } from '../../../../lib/ids.ts';
import { buildVerifier } from '../../../../lib/scram-verifier.ts';
import {
  adminDatabase,
  adminRole,
  adminScramIterations,
  replicationRole,
  spareDatabase,
} from '../../../interface/own-logins.ts';
import { renameDurably } from '../copy/tree.ts';
import { dataDirectory, type Layout, unfinishedPrefix } from '../home/layout.ts';
import type { Build } from './builds.ts';
import { withNewCluster } from './cluster.ts';

export interface Template {
  /** Name of its build. */
  readonly build: string;
  readonly dataDirectory: string;
  /** Password of Catnap's login in a clone that does not have its project's secret yet. */
  readonly secret: string;
}

export async function ensureTemplate(
  build: Build,
  layout: Layout,
  asRoot: boolean,
  progress: (line: string) => void = () => undefined,
): Promise<Template> {
  // An extended build makes the same cluster as the one that it extends.
  const name = build.base ?? build.name;
  const directory = layout.template(build.major, name);
  if (!existsSync(directory)) {
    progress(`preparing the Postgres ${build.major} template`);
    await makeTemplate(build, layout, asRoot, directory);
  }
  const secret = await readFile(join(directory, 'secret'), 'utf8');
  return { build: name, dataDirectory: dataDirectory(directory), secret };
}

/** Cluster and secret appear together, by one rename, so that an existing template is complete. */
async function makeTemplate(build: Build, layout: Layout, asRoot: boolean, directory: string): Promise<void> {
  await mkdir(dirname(directory), { recursive: true, mode: 0o700 });
  const making = await mkdtemp(join(dirname(directory), unfinishedPrefix));
  const secret = newSecret();
  const statements = templateStatements(buildVerifier(secret, randomBytes(16), adminScramIterations));
  try {
    const cluster = { build, superuser: adminRole, uid: asRoot ? 0 : null, statements };
    await withNewCluster(cluster, layout.work, async (made) => {
      await removeMaps(made);
      await rename(made, dataDirectory(making));
    });
    await writeFile(join(making, 'secret'), secret, { mode: 0o600, flush: true });
    await renameDurably(making, directory);
  } catch (error) {
    // Another process was faster; its template is just as good.
    if (!existsSync(directory)) throw error;
  } finally {
    await rm(making, { recursive: true, force: true });
  }
}

/** The maps of free space and of rows that all can see, of tables of every kind. */
const mapPattern = /^\d+_(fsm|vm)$/;

/**
 * A quarter of all files, 380 of 1,564, and making, linking and removing files is most of what a new project costs.
 * Postgres does without a map that is not there, as for a new table, and makes it when it next adds or vacuums rows.
 */
async function removeMaps(data: string): Promise<void> {
  const entries = await readdir(data, { withFileTypes: true, recursive: true });
  const maps = entries.filter((entry) => entry.isFile() && mapPattern.test(entry.name));
  for (const { parentPath, name } of maps) await rm(join(parentPath, name));
}

/**
 * Only Catnap enters its database. `template1` and `postgres` stay open, as on any server: since Postgres 15 nobody but
 * a superuser can create anything in `template1`, and Catnap itself makes databases from `template0`.
 */
function templateStatements(verifier: string): string[] {
  return [
    `ALTER ROLE ${adminRole} PASSWORD '${verifier}'`,
    // Cannot log in until a primary has replicas; created here, so that no tenant can create a role of this name.
    `CREATE ROLE ${replicationRole} NOLOGIN REPLICATION`,
    `CREATE DATABASE ${adminDatabase} OWNER ${adminRole} TEMPLATE template0`,
    `REVOKE ALL ON DATABASE ${adminDatabase} FROM PUBLIC`,
    `CREATE DATABASE ${spareDatabase} OWNER ${adminRole} TEMPLATE template0`,
  ];
}
