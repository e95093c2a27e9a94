/** What all objects of a cluster have in common, and where a kind of them is found. */

export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean;
  readonly blockOwnerDeletion?: boolean;
}

export interface ObjectMeta {
  readonly name: string;
  readonly namespace?: string;
  readonly uid?: string;
  /** Names the state of the object, and is compared for equality only. */
  readonly resourceVersion?: string;
  readonly generation?: number;
  readonly creationTimestamp?: string;
  readonly deletionTimestamp?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly finalizers?: readonly string[];
  readonly ownerReferences?: readonly OwnerReference[];
}

export interface KubernetesObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: ObjectMeta;
}

/** A kind of objects in a namespace. */
export interface Resource<T extends KubernetesObject = KubernetesObject> {
  /** Empty for the kinds that Kubernetes itself brings in its core. */
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly kind: string;
  /** Never set: carries the type of its objects. */
  readonly objects?: T;
}

export const apiVersionOf = ({ group, version }: Resource) => (group === '' ? version : `${group}/${version}`);

export function pathOf(resource: Resource, namespace: string, name?: string, subresource?: string): string {
  const root = resource.group === '' ? '/api' : `/apis/${resource.group}`;
  const parts = [resource.version, 'namespaces', namespace, resource.plural, name, subresource];
  return [root, ...parts.filter((part) => part !== undefined).map(encodeURIComponent)].join('/');
}

/** `a=b,c=d`: objects that have all of these labels. */
export const selectorOf = (labels: Readonly<Record<string, string>>) =>
  Object.entries(labels)
    .map(([name, value]) => `${name}=${value}`)
    .join(',');
