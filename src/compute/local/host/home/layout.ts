/**
 * The paths of the data home that hold servers, their data and their sockets. Callers give ids, never paths, and each
 * id is checked here: a caller that sends something else cannot point the privileged parent at another directory. Key
 * files, certificates and the instance lock are also in the home, and are named where they are made.
 *
 *   builds/<major>/<build>/{bin,lib,share}          server binaries, readable by every tenant
 *   templates/<major>/<build>/{pgdata,secret}       the cluster that new projects are cloned from
 *   templates/<major>/<build>/spares/               copies of it made ahead of time
 *   projects/<project>/branches/<branch>/           pgdata, branch.json, first-secret, relation-caches.json
 *   history/<project>/<history>/                    the past of a data directory: base images, log, history.json
 *   projects/<project>/endpoints/<endpoint>/        postgresql.conf, size.conf, pg_hba.conf, server.log, state.json
 *                                                   and while it is awake disk/image, mounted on disk/temp
 *   projects/<project>/endpoints/<endpoint>/replica pgdata and branch.json of a read replica
 *   s/<8 characters>/.s.PGSQL.5432                  unix sockets, of each endpoint and of each branch's primary
 *   s/proxies/<number>                              where a proxy takes SQL over HTTP, and cancel requests of others
 *   s/system/, system/                              socket and data of the system database
 *   work/ trash/                                    clusters and disks being made; directories being removed
 *   storage.json storage.img storage/               the image and its mount, where there is one; then templates,
 *                                                   projects, history, work and trash are in it, so that renames work
 */
import { createHash } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { idPattern } from '../../../../lib/ids.ts';

/** Names of what is not complete yet begin with a dot, which no id and no build does. */
export const unfinishedPrefix = '.making-';
/** Of new clusters, before the number of the process that makes them; a Catnap that is killed leaves them behind. */
export const newClusterPrefix = 'cluster-';
/** Of what is made to see how the filesystem copies, in the same way. */
export const copyProbePrefix = '.probe-';

/** Stands for a project where the histories of the system database are kept; no project's id is that short. */
export const systemHistoriesName = 'system';

/** `sun_path` holds 108 bytes with its final zero on Linux, 104 on macOS; the smaller limit is used on both. */
const maxSocketPath = 103;
const socketName = '.s.PGSQL.5432';
const buildPattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;
const validId = new RegExp(idPattern);

export interface Layout {
  readonly home: string;
  readonly root: string;
  readonly builds: string;
  readonly templates: string;
  readonly projects: string;
  readonly histories: string;
  readonly sockets: string;
  readonly system: string;
  readonly work: string;
  readonly trash: string;
  build(major: number, build: string): string;
  template(major: number, build: string): string;
  project(projectId: string): string;
  branches(projectId: string): string;
  branch(projectId: string, branchId: string): string;
  historiesOf(projectId: string): string;
  history(projectId: string, historyId: string): string;
  endpoints(projectId: string): string;
  endpoint(projectId: string, endpointId: string): string;
  /** What a read replica has of its own, with the contents of a branch's directory. */
  replica(projectId: string, endpointId: string): string;
  socketDirectory(endpointId: string): string;
  /** Where replicas reach the primary of a branch, whichever endpoint that is. */
  replicationDirectory(branchId: string): string;
  readonly systemSocketDirectory: string;
  /** Where Catnap's own processes reach the proxies. */
  readonly proxySocketDirectory: string;
}

/** `root` holds the data that shares blocks: the home, or the image that `catnap storage create` has mounted in it. */
export function createLayout(home: string, root = home): Layout {
  const projects = join(root, 'projects');
  const sockets = socketRoot(home);
  const project = (projectId: string) => join(projects, checkedId('project', projectId));
  return {
    home,
    root,
    builds: join(home, 'builds'),
    templates: join(root, 'templates'),
    projects,
    histories: join(root, 'history'),
    sockets,
    system: join(home, 'system'),
    work: join(root, 'work'),
    trash: join(root, 'trash'),
    build: (major, build) => join(home, 'builds', checkedMajor(major), checkedBuild(build)),
    template: (major, build) => join(root, 'templates', checkedMajor(major), checkedBuild(build)),
    project,
    branches: (projectId) => join(project(projectId), 'branches'),
    branch: (projectId, branchId) => join(project(projectId), 'branches', checkedId('branch', branchId)),
    historiesOf: (projectId) => join(root, 'history', checkedId('project', projectId)),
    history: (projectId, historyId) =>
      join(root, 'history', checkedId('project', projectId), checkedId('history', historyId)),
    endpoints: (projectId) => join(project(projectId), 'endpoints'),
    endpoint: (projectId, endpointId) => join(project(projectId), 'endpoints', checkedId('endpoint', endpointId)),
    replica: (projectId, endpointId) =>
      join(project(projectId), 'endpoints', checkedId('endpoint', endpointId), 'replica'),
    replicationDirectory: (branchId) => join(sockets, shortName(checkedId('branch', branchId))),
    socketDirectory: (endpointId) => join(sockets, shortName(checkedId('endpoint', endpointId))),
    // Neither name has 8 characters, so neither can be that of an endpoint's directory.
    systemSocketDirectory: join(sockets, 'system'),
    proxySocketDirectory: join(sockets, 'proxies'),
  };
}

export const dataDirectory = (branchDirectory: string) => join(branchDirectory, 'pgdata');
export const socketFile = (socketDirectory: string) => join(socketDirectory, socketName);
export const isId = (text: string) => validId.test(text);

function checkedId(noun: string, id: string): string {
  if (typeof id !== 'string' || !isId(id)) throw new Error(`not a valid ${noun} id; id:${JSON.stringify(id)}`);
  return id;
}

function checkedMajor(major: number): string {
  if (!Number.isInteger(major) || major < 10 || major > 99) throw new Error(`not a major version: ${major}`);
  return String(major);
}

function checkedBuild(build: string): string {
  if (!buildPattern.test(build)) throw new Error(`not the name of a build: ${JSON.stringify(build)}`);
  return build;
}

/** If the home's path is too long for a socket in it, sockets get a directory under the temporary folder. */
function socketRoot(home: string): string {
  const inHome = join(home, 's');
  const longest = Buffer.byteLength(socketFile(join(inHome, 'x'.repeat(8))));
  if (longest <= maxSocketPath) return inHome;
  return join(tmpdir(), `catnap-${process.getuid?.() ?? 0}-${shortName(home)}`);
}

/** 8 characters of 32: 40 bits, so that 10,000 endpoints have a collision on one machine in 20,000. */
function shortName(text: string): string {
  const alphabet = 'abcdefghijklmnopqrstuvwxyz234567';
  const digest = createHash('sha256').update(text).digest();
  return Array.from(digest.subarray(0, 8), (byte) => alphabet[byte % 32]).join('');
}
