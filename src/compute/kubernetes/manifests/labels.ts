/**
 * Names and labels. Everything that Catnap makes, and everything that the operator makes for it, carries the labels of
 * its project and branch: what belongs to one is found, and removed, by them alone.
 */
import type { BranchRef, ComputeRef, TenantRef } from '../../interface/driver.ts';

const domain = 'catnap.internal';

export const projectLabel = `${domain}/project`;
/** On a Cluster, the branch whose data it holds; its name keeps saying for which one it was made. */
export const branchLabel = `${domain}/branch`;
/** On the record of a compute. */
export const endpointLabel = `${domain}/endpoint`;
/** On the record of a compute, the branch that its newest generation is for; a compute may move to another one. */
export const branchAnnotation = `${domain}/branch`;
/** On a Cluster, the compute that was the last to serve it. */
export const endpointAnnotation = `${domain}/endpoint`;
/** On a Cluster, that of the compute which serves it; on the record of a compute, the newest of all. */
export const generationAnnotation = `${domain}/generation`;

/** On the Cluster of a read replica and its snapshot, the endpoint that they belong to. They have no branch's label. */
export const replicaLabel = `${domain}/replica`;
/** On the same, the branch that the replica follows. */
export const followsLabel = `${domain}/follows`;
/** On the Cluster of a read replica, the slot from which it streams. Set when its data is complete. */
export const slotAnnotation = `${domain}/slot`;
/** On the Cluster of a branch, the slots of replicas that are gone, which its server still has to drop. */
export const leftSlotsAnnotation = `${domain}/left-slots`;
/** On a Cluster, how its data was made. */
export const receiptAnnotation = `${domain}/receipt`;
/** On a Cluster, since when nobody has served it. */
export const asleepAnnotation = `${domain}/asleep-since`;
/** On a Cluster, the names of the parameters that Catnap gave it: the operator adds its own defaults to them. */
export const settingsAnnotation = `${domain}/settings`;
/** The operator's, on all that it makes for a Cluster. */
export const clusterLabel = 'cnpg.io/cluster';

export const labelsOfEverything: Readonly<Record<string, string>> = { 'app.kubernetes.io/managed-by': 'catnap' };

export const labelsOfProject = ({ projectId }: Pick<TenantRef, 'projectId'>): Readonly<Record<string, string>> => ({
  ...labelsOfEverything,
  [projectLabel]: projectId,
});

export const labelsOfBranch = (ref: Pick<BranchRef, 'projectId' | 'branchId'>): Readonly<Record<string, string>> => ({
  ...labelsOfProject(ref),
  [branchLabel]: ref.branchId,
});

export const labelsOfEndpoint = (
  ref: Pick<ComputeRef, 'projectId' | 'endpointId'>,
): Readonly<Record<string, string>> => ({
  ...labelsOfProject(ref),
  [endpointLabel]: ref.endpointId,
});

/** Whichever branch it follows. */
export const labelsOfReplica = (
  ref: Pick<ComputeRef, 'projectId' | 'endpointId'>,
): Readonly<Record<string, string>> => ({
  ...labelsOfProject(ref),
  [replicaLabel]: ref.endpointId,
});

export const labelsOfFollowers = (
  ref: Pick<BranchRef, 'projectId' | 'branchId'>,
): Readonly<Record<string, string>> => ({
  ...labelsOfProject(ref),
  [followsLabel]: ref.branchId,
});

/** CloudNativePG refuses longer names, because it appends to them. */
const clusterNameMax = 50;

/** Of a branch, or of a replica by its endpoint. Ids are lower-case letters, digits and hyphens, as names are. */
export function clusterName(id: string): string {
  if (id.length > clusterNameMax) throw new Error(`the id ${id} is too long for the name of a Cluster`);
  return id;
}

export const adminSecretName = (cluster: string) => `${cluster}-admin`;
/** Answers as soon as the server does; the operator's own Services wait for a probe first. */
export const directServiceName = (cluster: string) => `${cluster}-direct`;
/** One for each child, a branch or a replica: a source may be copied several times at once. */
export const snapshotName = (childId: string) => `${clusterName(childId)}-source`;
