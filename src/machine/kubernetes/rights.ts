/** Who may do what in the cluster. Only the worker touches computes, and only its pods have credentials. */
import { type Manifest, nameOf, pieces } from './manifest.ts';
import type { InstallationOptions } from './options.ts';

const everything = ['get', 'list', 'watch', 'create', 'patch', 'delete'];
const reading = ['get', 'list'];

/** The same as docs/kubernetes.md says; a test of the driver asks for no more than this. */
export const workerRules = [
  { apiGroups: ['postgresql.cnpg.io'], resources: ['clusters'], verbs: everything },
  { apiGroups: ['snapshot.storage.k8s.io'], resources: ['volumesnapshots'], verbs: everything },
  { apiGroups: [''], resources: ['secrets'], verbs: everything },
  { apiGroups: [''], resources: ['services', 'persistentvolumeclaims'], verbs: reading },
  { apiGroups: [''], resources: ['pods'], verbs: [...reading, 'delete'] },
  { apiGroups: [''], resources: ['pods/resize'], verbs: ['patch'] },
] as const;

export function rights({ namespace, computesNamespace }: InstallationOptions): Manifest[] {
  const worker = nameOf('worker');
  return [
    ...pieces.map((piece) => ({
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { name: nameOf(piece), namespace },
      automountServiceAccountToken: false,
    })),
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'Role',
      metadata: { name: worker, namespace: computesNamespace },
      rules: workerRules,
    },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'RoleBinding',
      metadata: { name: worker, namespace: computesNamespace },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: worker },
      subjects: [{ kind: 'ServiceAccount', name: worker, namespace }],
    },
  ];
}
