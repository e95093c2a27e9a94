/** The whole program with its computes on a real cluster, and what is done to that cluster under it. */
import { chmod, chown, copyFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Resource } from '../../../src/compute/kubernetes/client/objects.ts';
import { pods } from '../../../src/compute/kubernetes/objects/kinds.ts';
import { eventually } from '../eventually.ts';
import { Program } from '../program.ts';
import type { ChosenCluster } from './chosen-cluster.ts';

export interface LentProgram {
  readonly program: Program;
  remove(): Promise<void>;
}

/** Its processes run under a uid of their own, which gets a copy of the kubeconfig, and nobody else does. */
export async function startProgramOn(cluster: ChosenCluster): Promise<LentProgram> {
  const folder = await mkdtemp(join(tmpdir(), 'catnap-kube-'));
  const kubeconfig = join(folder, 'kubeconfig');
  const program = await Program.create({
    ...cluster.environment,
    CATNAP_KUBERNETES_CONFIG: kubeconfig,
    CATNAP_KUBERNETES_DEEP_SLEEP_SECONDS: '0',
  });
  const uid = program.home.config.uids?.service;
  await copyFile(cluster.kubeconfig, kubeconfig);
  await chmod(folder, 0o711);
  await chmod(kubeconfig, 0o400);
  if (uid !== undefined) await chown(kubeconfig, uid, uid);
  await program.start();
  return {
    program,
    async remove() {
      await program.destroy();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** As the operator's own manifest installs it. */
const operator = {
  namespace: 'cnpg-system',
  deployment: 'cnpg-controller-manager',
  labels: { 'app.kubernetes.io/name': 'cloudnative-pg' },
};
const deployments: Resource = { group: 'apps', version: 'v1', plural: 'deployments', kind: 'Deployment' };

/** Kubernetes starts another one, which takes over after some seconds. */
export async function killOperator(cluster: ChosenCluster): Promise<void> {
  const client = await cluster.clientIn(operator.namespace);
  const { items } = await client.list(pods, operator.labels);
  if (items.length === 0) throw new Error('the operator has no pod');
  for (const { metadata } of items) await client.remove(pods, metadata.name);
}

/** No operator runs during the work, and none starts before it has ended. */
export async function withoutOperator<T>(cluster: ChosenCluster, work: () => Promise<T>): Promise<T> {
  const client = await cluster.clientIn(operator.namespace);
  const scale = (replicas: number) => client.patch(deployments, operator.deployment, { spec: { replicas } });
  await scale(0);
  try {
    await eventually(async () => {
      const { items } = await client.list(pods, operator.labels);
      if (items.length > 0) throw new Error('the operator still has a pod');
    });
    return await work();
  } finally {
    await scale(1);
  }
}
