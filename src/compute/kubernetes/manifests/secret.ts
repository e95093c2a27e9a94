/** The password of Catnap's own login, in the form in which the operator reads it. */
import type { BranchRef } from '../../interface/driver.ts';
import { adminRole } from '../../interface/own-logins.ts';
import { apiVersionOf } from '../client/objects.ts';
import { type Secret, secrets } from '../objects/kinds.ts';
import type { Platform } from './cluster.ts';
import { adminSecretName, clusterName, labelsOfBranch } from './labels.ts';

export function adminSecretManifest(
  ref: BranchRef,
  password: string,
  { namespace }: Platform,
  cluster = clusterName(ref.branchId),
): Secret {
  return {
    apiVersion: apiVersionOf(secrets),
    kind: secrets.kind,
    metadata: { name: adminSecretName(cluster), namespace, labels: labelsOfBranch(ref) },
    type: 'kubernetes.io/basic-auth',
    stringData: { username: adminRole, password },
  };
}
