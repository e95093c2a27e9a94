/** The Kubernetes driver of a child process. Loaded only where it is configured: every process would pay for it. */
import type { KubernetesSettings } from '../../lib/kubernetes-settings.ts';
import type { ComputeDriver } from '../interface/driver.ts';
import { KubernetesDriver } from './driver/kubernetes-driver.ts';
import { openCluster } from './open-client.ts';

export async function openKubernetesDriver(
  settings: KubernetesSettings,
  checkSettings: ComputeDriver['checkSettings'],
): Promise<ComputeDriver> {
  return new KubernetesDriver({ ...(await openCluster(settings)), checkSettings });
}
