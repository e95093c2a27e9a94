/** What the operator makes for a Cluster: it owns all of it, and gives it the labels that are to be inherited. */
import type { KubernetesObject, Resource } from '../../../src/compute/kubernetes/client/objects.ts';
import { type Cluster, pods, secrets, services, volumeClaims } from '../../../src/compute/kubernetes/objects/kinds.ts';
import { claimOf, doublePort } from './cluster-status.ts';
import { type ObjectStore, podFinalizer, type StoredObject } from './object-store.ts';

type Owner = StoredObject & Cluster;

const claimFinalizer = 'kubernetes.io/pvc-protection';

/** Secrets and Services, which come before the claim. */
export function makeAccess(store: ObjectStore, owner: Owner, role: string): void {
  const { name } = owner.metadata;
  const data = { username: btoa(role), password: btoa('double') };
  for (const suffix of ['ca', 'server', 'replication', 'app']) {
    make(store, secrets, `${name}-${suffix}`, owner, { type: 'kubernetes.io/basic-auth', data });
  }
  const { disabledDefaultServices: off = [], additional = [] } = owner.spec.managed?.services ?? {};
  const usual = (['r', 'ro', 'rw'] as const).filter((one) => !off.includes(one)).map((one) => `${name}-${one}`);
  const more = additional.map(({ serviceTemplate }) => serviceTemplate.metadata?.name ?? '');
  for (const service of [...usual, ...more]) make(store, services, service, owner, {});
}

/** Of the Clusters that a replica may stream from: without them its instance manager could not connect. */
export function checkKeys(store: ObjectStore, { spec }: Cluster): void {
  for (const { name, sslKey, sslCert, sslRootCert } of spec.externalClusters ?? []) {
    for (const key of [sslKey, sslCert, sslRootCert]) {
      const found = store.find('secrets', key?.name ?? '');
      if (found === undefined) throw new Error(`no Secret ${key?.name} for the external cluster ${name}`);
    }
  }
}

export function makeClaim(store: ObjectStore, owner: Owner): void {
  const claim = claimOf(owner.metadata.name);
  make(store, volumeClaims, claim, owner, { status: { phase: 'Pending' } }, [claimFinalizer]);
}

/** Always with the resources of the Cluster, whatever an earlier pod was resized to. */
export function makePod(store: ObjectStore, owner: Owner, name: string): void {
  const { resources } = owner.spec;
  const spec = {
    containers: [{ name: 'postgres', resources, ports: [{ name: 'postgresql', containerPort: doublePort }] }],
    initContainers: [{ name: 'bootstrap-controller', resources }],
  };
  make(store, pods, name, owner, { spec, status: { phase: 'Pending' } }, [podFinalizer]);
}

function make(store: ObjectStore, resource: Resource, name: string, owner: Owner, rest: object, finalizers?: string[]) {
  if (store.find(resource.plural, name) !== undefined) return;
  const { apiVersion, kind, metadata, spec } = owner;
  const { namespace, uid } = metadata;
  const ownerReferences = [{ apiVersion, kind, name: metadata.name, uid, controller: true }];
  const labels = { ...spec.inheritedMetadata?.labels, 'cnpg.io/cluster': metadata.name };
  const made = { name, namespace, labels, ownerReferences, ...(finalizers && { finalizers }) };
  store.create(resource, { apiVersion: 'v1', kind: resource.kind, metadata: made, ...rest } as KubernetesObject);
}
