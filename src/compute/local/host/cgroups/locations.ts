/**
 * Where on this machine control groups can be made: below the group that Catnap itself is in, or as near to it as the
 * kernel allows, so that an operator's limits on Catnap also hold for its computes.
 */
import { readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { errorText } from '../../../../lib/errors.ts';
import type { CgroupTree } from './tree.ts';
import { CgroupTreeV1, type ControllerFolders } from './v1.ts';
import { CgroupTreeV2, missingControllers, passOn } from './v2.ts';

export interface Mount {
  readonly version: 1 | 2;
  /** The mounted part of the hierarchy, and its mount point. */
  readonly root: string;
  readonly point: string;
  readonly controllers: readonly string[];
}

const controllersV1 = ['cpu', 'cpuacct', 'memory', 'pids'] as const;

/** Opens a tree named `name` below the given groups (the text of `/proc/<pid>/cgroup`), or returns why it cannot. */
export function openTree(
  name: string,
  groups: string,
  mountinfo = readFileSync('/proc/self/mountinfo', 'utf8'),
): CgroupTree | { readonly problem: string } {
  const mounts = parseMounts(mountinfo);
  const own = parseOwnGroups(groups);
  const problems: string[] = [];
  const unified = mounts.find((mount) => mount.version === 2);
  for (const open of [() => openV2(unified, own, name), () => openV1(mounts, own, name)]) {
    try {
      const tree = open();
      if (tree !== null) return tree;
    } catch (error) {
      problems.push(errorText(error));
    }
  }
  return { problem: problems.at(-1) ?? 'the machine has no control groups with cpu, memory and pids' };
}

function openV1(mounts: readonly Mount[], own: ReadonlyMap<string, string>, name: string): CgroupTree | null {
  const folders: Partial<Record<(typeof controllersV1)[number], string>> = {};
  for (const controller of controllersV1) {
    const mount = mounts.find(({ version, controllers }) => version === 1 && controllers.includes(controller));
    if (mount === undefined) return null;
    folders[controller] = join(folderOf(mount, own.get(controller) ?? '/'), name);
  }
  return new CgroupTreeV1(folders as ControllerFolders);
}

/**
 * A group with processes in it cannot pass controllers on, except the root of the hierarchy, and Catnap itself is in
 * its own group. So the tree is made in the nearest ancestor that may be divided, and stays within the limits of that
 * one. A service manager may pass on less than it could; an ordinary user has only the group delegated to them.
 */
function openV2(mount: Mount | undefined, own: ReadonlyMap<string, string>, name: string): CgroupTree | null {
  if (mount === undefined) return null;
  let problem: unknown = null;
  for (const above of upwards(resolve(folderOf(mount, own.get('') ?? '/')), mount.point)) {
    if (missingControllers(above, 'cgroup.controllers').length > 0) continue;
    try {
      passOn(above);
      return new CgroupTreeV2(join(above, name));
    } catch (error) {
      problem = error;
    }
  }
  if (problem !== null) throw problem;
  return null;
}

/** The groups from `from` up to the mounted root. */
function upwards(from: string, root: string): string[] {
  return from.startsWith(`${root}/`) ? [from, ...upwards(dirname(from), root)] : [root];
}

/** In a container the mounted part may begin below the root that the paths are relative to. */
function folderOf({ root, point }: Mount, group: string): string {
  if (root === '/' || (group !== root && !group.startsWith(`${root}/`)))
    return join(point, group === root ? '/' : group);
  return join(point, group.slice(root.length));
}

/** Lines: id, parent, device, root, mount point, options, …, `-`, type, source, super options. */
export function parseMounts(mountinfo: string): Mount[] {
  return mountinfo.split('\n').flatMap((line): Mount[] => {
    const [before = '', after = ''] = line.split(' - ');
    const [, , , root = '/', point = ''] = before.split(' ');
    const [type, , options = ''] = after.split(' ');
    if (type !== 'cgroup' && type !== 'cgroup2') return [];
    return [{ version: type === 'cgroup2' ? 2 : 1, root, point, controllers: options.split(',') }];
  });
}

/** Lines: number, controllers, path; version 2 has no controllers, and its key is ''. */
export function parseOwnGroups(text: string): Map<string, string> {
  const groups = new Map<string, string>();
  for (const line of text.split('\n')) {
    const match = /^\d+:([^:]*):(.*)$/.exec(line);
    for (const controller of match?.[1]?.split(',') ?? []) groups.set(controller, match?.[2] ?? '/');
  }
  return groups;
}
