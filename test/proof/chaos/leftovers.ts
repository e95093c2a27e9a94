/** What nobody owns: processes, directories, mounts, loop devices, control groups, sockets and slots of one home. */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { historySlot, slotName } from '../../../src/compute/interface/own-logins.ts';
import { spareDiskPrefix } from '../../../src/compute/local/host/disks/spares.ts';
import { createLayout } from '../../../src/compute/local/host/home/layout.ts';
import { eventually } from '../../helpers/eventually.ts';
import type { World } from './world.ts';

interface Known {
  readonly projects: ReadonlySet<string>;
  /** And snapshots, whose data is beside theirs. */
  readonly branches: ReadonlySet<string>;
  readonly endpoints: ReadonlySet<string>;
}

/** Removal takes a moment; what is still there after the usual patience stays. */
export async function auditLeftovers(world: World): Promise<void> {
  await eventually(
    async () => {
      const found = findLeftovers(world, await readKnown(world));
      if (found.length > 0) throw new Error(`nobody owns:\n${found.join('\n')}`);
    },
    { everyMs: 500 },
  );
}

async function readKnown(world: World): Promise<Known> {
  const projects = await world.projectIds();
  const branches = new Set<string>();
  const endpoints = new Set<string>();
  for (const projectId of projects) {
    const found = await world.get<{ branches: { id: string }[] }>(`/projects/${projectId}/branches?limit=400`);
    const { snapshots } = await world.get<{ snapshots: { id: string }[] }>(`/projects/${projectId}/snapshots`);
    for (const { id } of [...found.branches, ...snapshots]) branches.add(id);
    for (const { id } of await world.endpointsOf(projectId)) endpoints.add(id);
  }
  return { projects: new Set(projects), branches, endpoints };
}

function findLeftovers(world: World, known: Known): string[] {
  return [
    ...directories(world, known),
    ...mounts(world),
    ...loops(world),
    ...groups(world),
    ...sockets(world, known),
    ...slots(world, known),
    ...processes(world),
  ];
}

function namesIn(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder) : [];
}

function unknownIn(folder: string, known: ReadonlySet<string>): string[] {
  return namesIn(folder)
    .filter((name) => !known.has(name))
    .map((name) => `directory ${join(folder, name)}`);
}

function directories({ installation: { root } }: World, { projects, branches, endpoints }: Known): string[] {
  const of = (folder: string, ids: ReadonlySet<string>) =>
    [...projects].flatMap((id) => unknownIn(join(root, 'projects', id, folder), ids));
  return [
    ...unknownIn(join(root, 'projects'), projects),
    ...unknownIn(join(root, 'history'), new Set([...projects, 'system'])),
    ...of('branches', branches),
    ...of('endpoints', endpoints),
    ...unknownIn(join(root, 'trash'), new Set()),
    ...namesIn(join(root, 'work'))
      .filter((name) => !name.startsWith(spareDiskPrefix))
      .map((name) => `directory ${join(root, 'work', name)}`),
  ];
}

const awake = (world: World) =>
  new Set(
    world
      .processes()
      .computes()
      .map(({ endpointId }) => endpointId),
  );

function mountPoints({ home }: World): string[] {
  const lines = readFileSync('/proc/self/mountinfo', 'utf8').split('\n');
  return lines.map((line) => line.split(' ')[4] ?? '').filter((path) => path.startsWith(`${home}/`));
}

function mounts(world: World): string[] {
  const running = awake(world);
  const { root } = world.installation;
  const storage = root === world.home ? null : root;
  const found = mountPoints(world);
  const isOwned = (path: string) => {
    const endpointId = /\/endpoints\/([^/]+)\/disk\/temp$/.exec(path)?.[1];
    if (endpointId !== undefined) return running.has(endpointId);
    return path === storage || path.startsWith(join(root, 'work', spareDiskPrefix));
  };
  return [
    ...found.filter((path) => !isOwned(path)).map((path) => `mount ${path}`),
    ...found.filter((path, at) => found.indexOf(path) !== at).map((path) => `second mount on ${path}`),
  ];
}

function loops(world: World): string[] {
  const mounted = new Set(mountPoints(world));
  return namesIn('/sys/block')
    .filter((name) => name.startsWith('loop'))
    .flatMap((name) => {
      const file = join('/sys/block', name, 'loop/backing_file');
      const backing = existsSync(file) ? readText(file).trim() : '';
      if (!backing.startsWith(`${world.home}/`)) return [];
      const mount = backing.replace(/\.img$/, '').replace(/\/image( \(deleted\))?$/, '/temp');
      return mounted.has(mount) ? [] : [`loop device ${name} of ${backing}`];
    });
}

function groups(world: World): string[] {
  const name = `catnap-${createHash('sha256').update(world.home).digest('hex').slice(0, 8)}`;
  const running = awake(world);
  const own = readText('/proc/self/cgroup').split('\n');
  const folders = own.flatMap((line) => {
    const [, controllers = '', path = ''] = line.split(':');
    return namesIn(join('/sys/fs/cgroup', controllers, path, name)).map((id) => ({ id, controllers }));
  });
  return folders
    .filter(({ id }) => id.startsWith('ep-') && !running.has(id))
    .map(({ id, controllers }) => `control group ${controllers} ${id}`);
}

function sockets({ home }: World, { branches, endpoints }: Known): string[] {
  const layout = createLayout(home);
  const owned = [
    ...[...endpoints].map((id) => layout.socketDirectory(id)),
    ...[...branches].map((id) => layout.replicationDirectory(id)),
  ];
  return unknownIn(layout.sockets, new Set([...owned.map((path) => basename(path)), 'system', 'proxies']));
}

/** Of replicas that are there, and the history's own. */
function slots(world: World, { endpoints }: Known): string[] {
  const allowed = new Set([historySlot, ...[...endpoints].map(slotName)]);
  return world
    .processes()
    .computes()
    .flatMap(({ dataDirectory }) => unknownIn(join(dataDirectory, 'pg_replslot'), allowed));
}

/** Copies, shells and carriers of traffic that no server needs, and children of a parent that is dead. */
function processes(world: World): string[] {
  const table = world.processes();
  const wanted = `CATNAP_HOME=${world.home}`;
  const lonely = namesIn('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== world.program.pid)
    .filter((name) => readText(`/proc/${name}/environ`).split('\0').includes(wanted))
    .filter((name) => readText(`/proc/${name}/cmdline`).includes('child.js'))
    .filter((name) => !table.childrenOf(world.program.pid).some(({ pid }) => pid === Number(name)));
  return [
    ...lonely.map((pid) => `process ${pid}, whose parent is dead`),
    ...table.others().map(({ pid, words }) => `process ${pid}: ${words.join(' ').slice(0, 200)}`),
  ];
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
