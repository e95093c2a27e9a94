/**
 * The objects of the double: versions, finalizers and owners as Kubernetes has them, and a log of what happened, which
 * watches read. Everything is copied on its way in and out.
 */
import { randomUUID } from 'node:crypto';
import { EventEmitter } from 'node:events';
import { isDeepStrictEqual } from 'node:util';
import type { KubernetesObject, ObjectMeta, Resource } from '../../../src/compute/kubernetes/client/objects.ts';
import { ApiFailure, failure, qualified } from './api-failure.ts';

export interface StoredObject extends KubernetesObject {
  readonly metadata: ObjectMeta & { readonly uid: string; readonly resourceVersion: string };
  readonly spec?: Readonly<Record<string, unknown>>;
  readonly status?: Readonly<Record<string, unknown>>;
}

export interface StoreEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly version: number;
  readonly plural: string;
  readonly object: StoredObject;
}

export interface RemoveRequest {
  readonly foreground: boolean;
  readonly uid: string | undefined;
  /** Nobody waits for the containers of a pod. */
  readonly force?: boolean;
}

/** In place of the kubelet's own bookkeeping: a pod that is to go stays until its containers have ended. */
export const podFinalizer = 'double/containers-have-ended';
const foregroundFinalizer = 'foregroundDeletion';

export class ObjectStore {
  readonly #objects = new Map<string, StoredObject>();
  readonly #resources = new Map<string, Resource>();
  readonly #events = new EventEmitter().setMaxListeners(0);
  #log: StoreEvent[] = [];
  #version = 1_000;
  /** Watches from before this version are refused. */
  #oldest = 1_000;

  constructor(resources: readonly Resource[]) {
    for (const resource of resources) this.#resources.set(resource.plural, resource);
  }

  get version(): number {
    return this.#version;
  }

  resource(plural: string, group: string): Resource | undefined {
    const found = this.#resources.get(plural);
    return found?.group === group ? found : undefined;
  }

  find(plural: string, name: string): StoredObject | undefined {
    const found = this.#objects.get(`${plural}/${name}`);
    return found && structuredClone(found);
  }

  list(plural: string): StoredObject[] {
    const found = [...this.#objects].filter(([key]) => key.startsWith(`${plural}/`));
    return found
      .map(([, object]) => structuredClone(object))
      .sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
  }

  create(resource: Resource, given: KubernetesObject): StoredObject {
    const { name } = given.metadata;
    const { plural } = resource;
    if (this.#objects.has(`${plural}/${name}`)) {
      const message = `${qualified(resource)} "${name}" already exists`;
      throw new ApiFailure(failure(409, 'AlreadyExists', message));
    }
    const creationTimestamp = `${new Date().toISOString().slice(0, 19)}Z`;
    const made = { ...given.metadata, uid: randomUUID(), generation: 1, creationTimestamp };
    return this.#write('ADDED', plural, { ...structuredClone(given), metadata: { ...made, resourceVersion: '' } });
  }

  /**
   * Writes what `change` makes of the object as it is now. A write that changes nothing leaves its version, and one
   * that takes away the last finalizer of an object that is to go removes it.
   */
  update(plural: string, name: string, change: (current: StoredObject) => KubernetesObject): StoredObject | undefined {
    const current = this.#objects.get(`${plural}/${name}`);
    if (current === undefined) return undefined;
    const next = structuredClone(change(structuredClone(current))) as StoredObject;
    const { uid, resourceVersion, generation = 1, deletionTimestamp } = current.metadata;
    const kept = {
      ...next.metadata,
      uid,
      resourceVersion,
      generation,
      ...(deletionTimestamp && { deletionTimestamp }),
    };
    if (isDeepStrictEqual({ ...next, metadata: kept }, current)) return structuredClone(current);
    const isNewSpec = !isDeepStrictEqual(next.spec, current.spec);
    const written = { ...next, metadata: { ...kept, generation: isNewSpec ? generation + 1 : generation } };
    if (deletionTimestamp !== undefined && (kept.finalizers ?? []).length === 0) return this.#drop(plural, written);
    return this.#write('MODIFIED', plural, written);
  }

  remove(plural: string, name: string, { foreground, uid, force }: RemoveRequest): StoredObject | undefined {
    const current = this.#objects.get(`${plural}/${name}`);
    const resource = this.#resources.get(plural);
    if (current === undefined || resource === undefined) return undefined;
    if (uid !== undefined && uid !== current.metadata.uid) {
      const what = `${resource.kind}${resource.group === '' ? '' : `.${resource.group}`} "${name}"`;
      const why = `the UID in the precondition (${uid}) does not match the UID in record (${current.metadata.uid})`;
      const message = `Operation cannot be fulfilled on ${what}: ${why}. The object might have been deleted and then recreated`;
      throw new ApiFailure(failure(409, 'Conflict', message));
    }
    const finalizers = new Set(current.metadata.finalizers);
    if (foreground) finalizers.add(foregroundFinalizer);
    if (force) finalizers.delete(podFinalizer);
    if (finalizers.size === 0 && !force) return this.#drop(plural, current);
    if (current.metadata.deletionTimestamp === undefined || force) {
      const deletionTimestamp = `${new Date().toISOString().slice(0, 19)}Z`;
      const metadata = { ...current.metadata, deletionTimestamp, finalizers: [...finalizers] };
      this.#write('MODIFIED', plural, { ...current, metadata });
      if (foreground) this.#removeOwnedBy(current.metadata.uid);
    }
    const left = this.#objects.get(`${plural}/${name}`);
    if (left !== undefined && finalizers.size === 0) return this.#drop(plural, left);
    return this.find(plural, name) ?? current;
  }

  /** What happened after a version, or undefined when that is forgotten. */
  since(version: number): readonly StoreEvent[] | undefined {
    return version < this.#oldest ? undefined : this.#log.filter((event) => event.version > version);
  }

  /** Calls back for every event until the signal fires. */
  onEvent(listener: (event: StoreEvent) => void, signal: AbortSignal): void {
    this.#events.on('event', listener);
    signal.addEventListener('abort', () => this.#events.off('event', listener), { once: true });
  }

  /** As etcd does after minutes: versions until now can no longer be watched from. */
  compact(): void {
    this.#log = [];
    this.#oldest = ++this.#version;
  }

  #drop(plural: string, object: StoredObject): StoredObject {
    this.#objects.delete(`${plural}/${object.metadata.name}`);
    const dropped = this.#emit('DELETED', plural, object);
    this.#removeOwnedBy(object.metadata.uid);
    for (const { uid } of object.metadata.ownerReferences ?? []) this.#releaseOwner(uid);
    return dropped;
  }

  /** The garbage collector, which never takes long here. */
  #removeOwnedBy(uid: string): void {
    for (const [key, { metadata }] of [...this.#objects]) {
      if (!metadata.ownerReferences?.some((owner) => owner.uid === uid)) continue;
      this.remove(key.split('/')[0] ?? '', metadata.name, { foreground: false, uid: undefined });
    }
    this.#releaseOwner(uid);
  }

  /** An object that waits for what it owns goes with the last of it. */
  #releaseOwner(uid: string): void {
    const owned = [...this.#objects.values()].some(({ metadata }) =>
      metadata.ownerReferences?.some((owner) => owner.uid === uid),
    );
    if (owned) return;
    for (const [key, { metadata }] of [...this.#objects]) {
      if (metadata.uid !== uid || !metadata.finalizers?.includes(foregroundFinalizer)) continue;
      const finalizers = metadata.finalizers.filter((name) => name !== foregroundFinalizer);
      this.update(key.split('/')[0] ?? '', metadata.name, (it) => ({
        ...it,
        metadata: { ...it.metadata, finalizers },
      }));
    }
  }

  #write(type: 'ADDED' | 'MODIFIED', plural: string, object: StoredObject): StoredObject {
    const written = this.#emit(type, plural, object);
    this.#objects.set(`${plural}/${object.metadata.name}`, written);
    return structuredClone(written);
  }

  #emit(type: StoreEvent['type'], plural: string, object: StoredObject): StoredObject {
    const version = ++this.#version;
    const written = { ...object, metadata: { ...object.metadata, resourceVersion: String(version) } };
    const event = { type, version, plural, object: written };
    this.#log.push(event);
    // After the write that caused it is complete, as for every other observer.
    queueMicrotask(() => this.#events.emit('event', event));
    return written;
  }
}
