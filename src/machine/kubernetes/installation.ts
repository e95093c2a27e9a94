/**
 * Everything that Catnap needs in a cluster, as manifests: pure functions of what the operator says. The system
 * database, CloudNativePG, the ingress controller and the Secrets are there already.
 */
import { stringify } from 'yaml';
import { deployments } from './deployments.ts';
import type { Manifest } from './manifest.ts';
import { entrances, networkPolicies } from './network.ts';
import type { InstallationOptions } from './options.ts';
import { rights } from './rights.ts';

/** In the order in which they can be applied. */
export function installationManifests(options: InstallationOptions): Manifest[] {
  return [
    ...namespaces(options),
    ...rights(options),
    ...networkPolicies(options),
    ...entrances(options),
    ...deployments(options),
  ];
}

export function renderManifests(manifests: readonly Manifest[]): string {
  return manifests.map((manifest) => stringify(manifest, { lineWidth: 0, aliasDuplicateObjects: false })).join('---\n');
}

const security = (mode: string, level: string) => ({ [`pod-security.kubernetes.io/${mode}`]: level });

/** Pods of computes are the operator's, and what it asks for has not been tried against the strictest level. */
function namespaces({ namespace, computesNamespace }: InstallationOptions): Manifest[] {
  const made = (name: string, labels: Record<string, string>) => ({
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name, labels },
  });
  return [
    made(namespace, security('enforce', 'restricted')),
    made(computesNamespace, { ...security('enforce', 'baseline'), ...security('warn', 'restricted') }),
  ];
}
