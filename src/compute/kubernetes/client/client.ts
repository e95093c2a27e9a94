/**
 * Objects of one namespace: read, made, changed and removed. Failures that pass by themselves are repeated here; what
 * reaches the caller is final, or has outlasted the patience. Every call can be repeated: names are chosen by the
 * caller, so a create that was carried out and whose reply was lost is found as `exists`.
 */
import type { ClusterAccess } from './access.ts';
import { isVerdict } from './api-error.ts';
import { type KubernetesObject, pathOf, type Resource, selectorOf } from './objects.ts';
import { type Patience, usualPatience, withRetries } from './retries.ts';
import { type ApiRequest, Transport } from './transport.ts';
import { type WatchEvent, watchObjects } from './watch.ts';

/** A merge patch (RFC 7396): what it names is replaced, null takes away. */
export type MergePatch = { readonly [name: string]: unknown };

export interface Listing<T> {
  readonly items: readonly T[];
  readonly resourceVersion: string;
}

export interface RemoveOptions {
  /** The object itself goes only after everything that it owns. */
  readonly foreground?: boolean;
  /** Leaves alone an object of the same name that was made later. */
  readonly uid?: string;
}

type Labels = Readonly<Record<string, string>>;

/** Large enough that a namespace is one or two replies, small enough for a reply of a few megabytes. */
const pageSize = 500;
/** Beyond this many writers in a row somebody fights over the object. */
const conflictsMax = 10;
/** A misspelt field is refused, and not dropped with a warning that nobody reads. */
const strict = { fieldValidation: 'Strict', fieldManager: 'catnap' };

export class KubernetesClient {
  readonly namespace: string;
  readonly #transport: Transport;
  readonly #patience: Patience;

  constructor(access: ClusterAccess, options: { readonly patience?: Patience; readonly replyMsMax?: number } = {}) {
    this.namespace = access.namespace;
    this.#transport = new Transport(access, options);
    this.#patience = options.patience ?? usualPatience;
  }

  async find<T extends KubernetesObject>(resource: Resource<T>, name: string): Promise<T | null> {
    const path = pathOf(resource, this.namespace, name);
    return orWithout(this.#send<T>({ method: 'GET', path }));
  }

  /** False when there is one of this name already, which stays as it is. */
  async create<T extends KubernetesObject>(resource: Resource<T>, object: T): Promise<boolean> {
    const path = pathOf(resource, this.namespace);
    try {
      await this.#send({ method: 'POST', path, query: strict, body: object });
      return true;
    } catch (error) {
      if (isVerdict(error, 'exists')) return false;
      throw error;
    }
  }

  /** Null when there is no such object. A `resourceVersion` in the patch makes it fail on any other version. */
  async patch<T extends KubernetesObject>(
    resource: Resource<T>,
    name: string,
    patch: MergePatch,
    subresource?: string,
  ): Promise<T | null> {
    const path = pathOf(resource, this.namespace, name, subresource);
    const contentType = 'application/merge-patch+json';
    return orWithout(this.#send<T>({ method: 'PATCH', path, query: strict, body: patch, contentType }));
  }

  /**
   * Decides on what the object is and writes only if it is still that: `decide` is asked again when somebody else was
   * quicker. It returns null to leave the object alone. Null when there is no such object.
   */
  async change<T extends KubernetesObject>(
    resource: Resource<T>,
    name: string,
    decide: (current: T) => MergePatch | null,
  ): Promise<T | null> {
    for (let conflicts = 0; ; conflicts++) {
      const current = await this.find(resource, name);
      if (current === null) return null;
      const patch = decide(current);
      if (patch === null) return current;
      const { resourceVersion } = current.metadata;
      const metadata = { ...(patch.metadata as object | undefined), resourceVersion };
      try {
        return await this.patch(resource, name, { ...patch, metadata });
      } catch (error) {
        if (!isVerdict(error, 'conflict') || conflicts === conflictsMax) throw error;
      }
    }
  }

  /** False when there was none. Returns before what the object owns is gone, and before its finalizers are through. */
  async remove(resource: Resource, name: string, { foreground, uid }: RemoveOptions = {}): Promise<boolean> {
    const path = pathOf(resource, this.namespace, name);
    const propagationPolicy = foreground ? 'Foreground' : 'Background';
    const preconditions = uid === undefined ? undefined : { uid };
    const body = { apiVersion: 'v1', kind: 'DeleteOptions', propagationPolicy, preconditions };
    try {
      return (await orWithout(this.#send({ method: 'DELETE', path, body }))) !== null;
    } catch (error) {
      if (uid !== undefined && isVerdict(error, 'conflict')) return false;
      throw error;
    }
  }

  /** All objects that have these labels. Begins again when the server has forgotten the version of the first page. */
  async list<T extends KubernetesObject>(resource: Resource<T>, labels: Labels = {}): Promise<Listing<T>> {
    for (let expiries = 0; ; expiries++) {
      try {
        return await this.#listPages(resource, labels);
      } catch (error) {
        if (!isVerdict(error, 'expired') || expiries === conflictsMax) throw error;
      }
    }
  }

  /** What is there and what becomes of it, without end: see `watch.ts`. */
  watch<T extends KubernetesObject>(
    resource: Resource<T>,
    labels: Labels,
    signal: AbortSignal,
  ): AsyncGenerator<WatchEvent<T>> {
    const path = pathOf(resource, this.namespace);
    return watchObjects<T>(
      {
        list: () => this.list(resource, labels),
        lines: (query, silentMsMax) => {
          const selected = { ...query, labelSelector: selectorOf(labels) };
          return this.#transport.lines({ method: 'GET', path, query: selected, signal }, silentMsMax);
        },
      },
      this.#patience,
      signal,
    );
  }

  close(): void {
    this.#transport.close();
  }

  async #listPages<T extends KubernetesObject>(resource: Resource<T>, labels: Labels): Promise<Listing<T>> {
    const path = pathOf(resource, this.namespace);
    const items: T[] = [];
    for (let token = ''; ; ) {
      const query: Record<string, string> = { limit: String(pageSize), labelSelector: selectorOf(labels) };
      if (token !== '') query.continue = token;
      const page = await this.#send<ListReply<T>>({ method: 'GET', path, query });
      items.push(...page.items);
      token = page.metadata.continue ?? '';
      if (token === '') return { items, resourceVersion: page.metadata.resourceVersion };
    }
  }

  #send<T>(request: ApiRequest): Promise<T> {
    return withRetries(() => this.#transport.send(request), this.#patience) as Promise<T>;
  }
}

interface ListReply<T> {
  readonly metadata: { readonly resourceVersion: string; readonly continue?: string };
  readonly items: readonly T[];
}

async function orWithout<T>(reply: Promise<T>): Promise<T | null> {
  try {
    return await reply;
  } catch (error) {
    if (isVerdict(error, 'missing')) return null;
    throw error;
  }
}
