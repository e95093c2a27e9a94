/**
 * What people ask for in a schedule. A command is named, with two numbers that choose its subjects among those that the
 * schedule has come to know by then, so that a schedule can be written down, cut and played again.
 */
import type { Caller } from '../../../src/core/access.ts';
import { deleteBranch } from '../../../src/core/branch.ts';
import { createBranch } from '../../../src/core/branch-create.ts';
import { restoreBranch } from '../../../src/core/branch-restore.ts';
import type { CommandScope } from '../../../src/core/context.ts';
import { createDatabase, deleteDatabase, updateDatabaseOf } from '../../../src/core/database.ts';
import { createEndpoint, deleteEndpoint, startEndpoint, suspendEndpoint } from '../../../src/core/endpoint.ts';
import { restartEndpoint, updateEndpointOf } from '../../../src/core/endpoint-update.ts';
import { deleteProject, updateProjectOf } from '../../../src/core/project.ts';
import { purgeBranch, recoverBranch, recoverProject } from '../../../src/core/recovery.ts';
import { createRole, deleteRole, resetRolePassword } from '../../../src/core/role.ts';
import { createSnapshot, deleteSnapshot } from '../../../src/core/snapshot.ts';
import { finalizeRestore, restoreSnapshot } from '../../../src/core/snapshot-restore.ts';
import type { BranchId, EndpointId, ProjectId, SnapshotId } from '../../../src/lib/ids.ts';

export interface NamedThing {
  readonly branchId: BranchId;
  readonly name: string;
}

/** What the people in a schedule know, from the answers that they got. */
export interface Known {
  readonly projectId: ProjectId;
  readonly ownerName: string;
  readonly branches: BranchId[];
  readonly endpoints: EndpointId[];
  readonly roles: NamedThing[];
  readonly databases: NamedThing[];
  readonly snapshots: SnapshotId[];
  /** What was acknowledged to be there, by id, or by branch and name. */
  readonly promised: Set<string>;
  /** What somebody has asked to take away, or to replace, whatever the answer was. */
  readonly doubtful: Set<string>;
}

export const nameOf = ({ branchId, name }: NamedThing) => `${branchId}/${name}`;

export interface Wish {
  /** In one transaction; returns what goes over the wire. */
  readonly work: (scope: CommandScope) => Promise<object>;
  /** A request may be sent again with the same key when its answer was lost. */
  readonly learn?: (reply: never) => void;
  /** What cannot be taken for granted any more from now on. */
  readonly doubts?: readonly string[];
}

interface Choice {
  readonly caller: Caller;
  readonly known: Known;
  /** Of this command alone. */
  readonly name: string;
  readonly first: number;
  readonly second: number;
}

/** Undefined when there is nothing yet that it could be about. */
type Command = (choice: Choice) => Wish | undefined;

function chosen<T>(from: readonly T[], number: number): T | undefined {
  return from[number % from.length];
}

const onBranch =
  (make: (branchId: BranchId, choice: Choice) => Wish): Command =>
  (choice) => {
    const branchId = chosen(choice.known.branches, choice.first);
    return branchId === undefined ? undefined : make(branchId, choice);
  };

const onEndpoint =
  (make: (endpointId: EndpointId, choice: Choice) => Wish): Command =>
  (choice) => {
    const endpointId = chosen(choice.known.endpoints, choice.first);
    return endpointId === undefined ? undefined : make(endpointId, choice);
  };

const onNamed =
  (
    which: 'roles' | 'databases',
    make: (address: NamedThing & { projectId: ProjectId }, choice: Choice) => Wish,
  ): Command =>
  (choice) => {
    const thing = chosen(choice.known[which], choice.first);
    return thing === undefined ? undefined : make({ ...thing, projectId: choice.known.projectId }, choice);
  };

function promise(known: Known, ...names: readonly string[]): void {
  for (const name of names) known.promised.add(name);
}

interface MadeBranch {
  readonly branchId: BranchId;
  readonly endpointIds: readonly EndpointId[];
}

function addBranch(schemaOnly: boolean): Command {
  return onBranch((parentId, { caller, known, name, second }) => ({
    work: async (scope) => {
      const endpoints = [
        [],
        [{ type: 'read_write' as const }],
        [{ type: 'read_write' as const }, { type: 'read_only' as const }],
      ];
      const initSource = schemaOnly ? { initSource: 'schema-only' } : {};
      const input = { parentId, name, annotation: {}, endpoints: chosen(endpoints, second) ?? [], ...initSource };
      const made = await createBranch(scope, caller, known.projectId, input);
      return { branchId: made.branch.id, endpointIds: made.endpoints.map(({ id }) => id) };
    },
    learn: ({ branchId, endpointIds }: MadeBranch) => {
      known.branches.push(branchId);
      known.endpoints.push(...endpointIds);
      promise(known, branchId, ...endpointIds);
    },
  }));
}

const endpointOn = (type: 'read_write' | 'read_only'): Command =>
  onBranch((branchId, { caller, known }) => ({
    work: async (scope) => ({
      id: (await createEndpoint(scope, caller, known.projectId, { type, branchId })).endpoint.id,
    }),
    learn: ({ id }: { id: EndpointId }) => {
      known.endpoints.push(id);
      promise(known, id);
    },
  }));

const change = (changes: Parameters<typeof updateEndpointOf>[3]): Command =>
  onEndpoint((endpointId, { caller, known }) => ({
    work: (scope) => updateEndpointOf(scope, caller, { projectId: known.projectId, endpointId }, changes),
  }));

const restore = (keeps: boolean): Command =>
  onBranch((branchId, { caller, known, name, second }) => {
    const sourceId = chosen(known.branches, second) ?? branchId;
    return {
      work: (scope) =>
        restoreBranch(scope, caller, {
          projectId: known.projectId,
          branchId,
          sourceId,
          preserveUnderName: keeps ? name : null,
        }),
      doubts: [branchId],
    };
  });

const remove = (isFinal: boolean): Command =>
  onBranch((branchId, { caller, known }) => ({
    work: (scope) => deleteBranch(scope, caller, known.projectId, branchId, isFinal),
    doubts: [branchId],
  }));

const fromSnapshot = (finalize: boolean): Command => {
  return ({ caller, known, first, second }) => {
    const snapshotId = chosen(known.snapshots, first);
    const targetBranchId = chosen(known.branches, second);
    if (snapshotId === undefined || targetBranchId === undefined) return undefined;
    return {
      work: async (scope) => {
        const address = { projectId: known.projectId, snapshotId };
        const made = await restoreSnapshot(scope, caller, address, { finalize, targetBranchId });
        return { branchId: made.branch.id, endpointIds: made.endpoints.map(({ id }) => id) };
      },
      learn: ({ branchId, endpointIds }: MadeBranch) => {
        known.branches.push(branchId);
        known.endpoints.push(...endpointIds);
      },
      // Its computes are moved, and one that is replaced loses its place.
      doubts: finalize ? [targetBranchId] : [],
    };
  };
};

export const commands: Readonly<Record<string, Command>> = {
  createBranch: addBranch(false),
  createSchemaOnlyBranch: addBranch(true),
  createPrimary: endpointOn('read_write'),
  createReplica: endpointOn('read_only'),
  start: onEndpoint((id, { caller, known }) => ({
    work: (scope) => startEndpoint(scope, caller, known.projectId, id),
  })),
  suspend: onEndpoint((id, { caller, known }) => ({
    work: (scope) => suspendEndpoint(scope, caller, known.projectId, id),
  })),
  restart: onEndpoint((id, { caller, known }) => ({
    work: (scope) => restartEndpoint(scope, caller, known.projectId, id),
  })),
  resize: change({ maxCu: 2 }),
  setWorkMemory: change({ settings: { pg_settings: { work_mem: '8MB' } } }),
  setMaxConnections: change({ settings: { pg_settings: { max_locks_per_transaction: '128' } } }),
  disable: change({ disabled: true }),
  enable: change({ disabled: false }),
  move: onEndpoint((endpointId, { caller, known, second }) => ({
    work: (scope) => {
      const branchId = chosen(known.branches, second);
      return updateEndpointOf(scope, caller, { projectId: known.projectId, endpointId }, { branchId });
    },
  })),
  deleteEndpoint: onEndpoint((id, { caller, known }) => ({
    work: (scope) => deleteEndpoint(scope, caller, known.projectId, id),
    doubts: [id],
  })),
  createRole: onBranch((branchId, { caller, known, name }) => ({
    work: async (scope) => {
      await createRole(scope, caller, { projectId: known.projectId, branchId, name, noLogin: false });
      return {};
    },
    learn: () => {
      known.roles.push({ branchId, name });
      promise(known, nameOf({ branchId, name }));
    },
  })),
  resetPassword: onNamed('roles', (address, { caller }) => ({
    work: (scope) => resetRolePassword(scope, caller, address),
  })),
  deleteRole: onNamed('roles', (address, { caller }) => ({
    work: (scope) => deleteRole(scope, caller, address),
    doubts: [nameOf(address)],
  })),
  createDatabase: onBranch((branchId, { caller, known, name }) => ({
    work: async (scope) => {
      const { projectId, ownerName } = known;
      await createDatabase(scope, caller, { projectId, branchId, name, ownerName });
      return {};
    },
    learn: () => {
      known.databases.push({ branchId, name });
      promise(known, nameOf({ branchId, name }));
    },
  })),
  renameDatabase: onNamed('databases', (address, { caller, known, name }) => ({
    work: async (scope) => {
      await updateDatabaseOf(scope, caller, address, { name });
      return {};
    },
    // Either name may be the one that it has in the end.
    learn: () => known.databases.push({ branchId: address.branchId, name }),
    doubts: [nameOf(address)],
  })),
  deleteDatabase: onNamed('databases', (address, { caller }) => ({
    work: (scope) => deleteDatabase(scope, caller, address),
    doubts: [nameOf(address)],
  })),
  restore: restore(false),
  restoreAndKeep: restore(true),
  deleteBranch: remove(false),
  deleteBranchForGood: remove(true),
  recoverBranch: onBranch((branchId, { caller, known }) => ({
    work: (scope) => recoverBranch(scope, caller, known.projectId, branchId),
  })),
  purgeBranch: onBranch((branchId, { caller, known }) => ({
    work: (scope) => purgeBranch(scope, caller, known.projectId, branchId),
    doubts: [branchId],
  })),
  deleteProject: ({ caller, known }) => ({
    work: (scope) => deleteProject(scope, caller, known.projectId),
    doubts: [known.projectId],
  }),
  recoverProject: ({ caller, known }) => ({ work: (scope) => recoverProject(scope, caller, known.projectId) }),
  replicateLogically: ({ caller, known }) => ({
    work: (scope) =>
      updateProjectOf(scope, caller, known.projectId, { settings: { enable_logical_replication: true } }),
  }),
  takeSnapshot: onBranch((branchId, { caller, known }) => ({
    work: async (scope) => ({
      id: (await createSnapshot(scope, caller, { projectId: known.projectId, branchId }, {})).snapshot.id,
    }),
    learn: ({ id }: { id: SnapshotId }) => {
      known.snapshots.push(id);
    },
  })),
  deleteSnapshot: ({ caller, known, first }) => {
    const snapshotId = chosen(known.snapshots, first);
    if (snapshotId === undefined) return undefined;
    return { work: (scope) => deleteSnapshot(scope, caller, { projectId: known.projectId, snapshotId }) };
  },
  restoreSnapshot: fromSnapshot(false),
  restoreSnapshotInPlace: fromSnapshot(true),
  finalizeRestore: onBranch((branchId, { caller, known }) => ({
    work: (scope) => finalizeRestore(scope, caller, { projectId: known.projectId, branchId }, null),
    doubts: known.branches,
  })),
};
