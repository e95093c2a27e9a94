/**
 * A double of the Kubernetes API server, over HTTP: one namespace, the kinds that Catnap uses, versions, watches and
 * refusals as they were recorded from a real one. It is no Kubernetes, and what passes here has not run on one.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, type ServerOptions } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { KubernetesObject, Resource } from '../../../src/compute/kubernetes/client/objects.ts';
import type { Secret } from '../../../src/compute/kubernetes/objects/kinds.ts';
import { ApiFailure, conflict, type Failure, failure, notFound, webhookDown } from './api-failure.ts';
import { checkObject } from './check-object.ts';
import { mergePatched } from './merge-patch.ts';
import { ObjectStore, type StoredObject, type StoreEvent } from './object-store.ts';
import { withOperatorsDefaults } from './operator-parameters.ts';
import { type KubeletMood, resizePod } from './resize-pod.ts';

interface Call {
  readonly method: string;
  readonly resource: Resource;
  readonly name: string | undefined;
  readonly subresource: string | undefined;
  readonly query: URLSearchParams;
  readonly body: unknown;
  readonly contentType: string;
}

export interface SeenRequest {
  readonly method: string;
  /** With its query. */
  readonly path: string;
  readonly authorization: string | undefined;
  readonly body: unknown;
}

const accepted = 'application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml';

export class ApiServerDouble {
  readonly store: ObjectStore;
  readonly requests: SeenRequest[] = [];
  /** With it down, its webhooks fail every write of its kinds; all else goes on. */
  isOperatorUp = true;
  /** Comes before the server, which goes on only where nothing is returned, or with a reply that is lost. */
  interfere: ((request: SeenRequest) => Failure | 'hang up' | 'lose the reply' | undefined) | null = null;
  readonly namespace: string;
  kubeletMood: KubeletMood = 'obliging';
  readonly #server: ReturnType<typeof createServer>;
  readonly #watches = new Set<ServerResponse>();
  #broken: Failure | null = null;

  constructor(
    resources: readonly Resource[],
    { tls, namespace = 'computes' }: { readonly tls?: ServerOptions; readonly namespace?: string } = {},
  ) {
    this.namespace = namespace;
    this.store = new ObjectStore(resources);
    const answer = (incoming: IncomingMessage, outgoing: ServerResponse) => void this.#answer(incoming, outgoing);
    this.#server = tls === undefined ? createServer(answer) : createTlsServer(tls, answer);
  }

  async listen(): Promise<URL> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    const { port } = this.#server.address() as AddressInfo;
    return new URL(`${'setSecureContext' in this.#server ? 'https' : 'http'}://127.0.0.1:${port}`);
  }

  /** Ends all watches: politely, as after their time, or as a network does that breaks. */
  endWatches(how: 'politely' | 'broken'): void {
    for (const watch of this.#watches) how === 'politely' ? watch.end() : watch.destroy();
  }

  /** Something that makes objects real has failed: every request is refused with the reason from now on. */
  breakWith(reason: unknown): void {
    this.#broken ??= failure(422, 'Invalid', `the double failed: ${String(reason)}`);
    this.endWatches('broken');
  }

  get watchCount(): number {
    return this.#watches.size;
  }

  /** Tells all watches the current version, as a server does every minute. */
  sendBookmarks(): void {
    const metadata = { resourceVersion: String(this.store.version) };
    const line = JSON.stringify({ type: 'BOOKMARK', object: { kind: 'Bookmark', apiVersion: 'v1', metadata } });
    for (const watch of this.#watches) watch.write(`${line}\n`);
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }

  async #answer(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk);
    const text = Buffer.concat(chunks).toString();
    const url = new URL(incoming.url ?? '', 'http://double');
    const seen = {
      method: incoming.method ?? '',
      path: incoming.url ?? '',
      authorization: incoming.headers.authorization,
      body: text === '' ? undefined : JSON.parse(text),
    };
    this.requests.push(seen);
    const interference = this.interfere?.(seen);
    if (interference === 'hang up') return void incoming.socket.destroy();
    if (typeof interference === 'object') return reply(outgoing, interference.code, interference.body);
    if (this.#broken !== null) return reply(outgoing, this.#broken.code, this.#broken.body);
    const found = this.#locate(url.pathname);
    if (found === undefined) {
      outgoing.writeHead(404, { 'content-type': 'text/plain; charset=utf-8' }).end('404 page not found\n');
      return;
    }
    const contentType = incoming.headers['content-type'] ?? '';
    const call = { ...found, method: seen.method, query: url.searchParams, body: seen.body, contentType };
    try {
      if (call.query.get('watch') === '1') return this.#watch(call, outgoing);
      const made = this.#carryOut(call);
      if (interference === 'lose the reply') return void incoming.socket.destroy();
      reply(outgoing, call.method === 'POST' ? 201 : 200, made);
    } catch (error) {
      if (!(error instanceof ApiFailure)) throw error;
      reply(outgoing, error.failure.code, error.failure.body);
    }
  }

  #locate(path: string): Pick<Call, 'resource' | 'name' | 'subresource'> | undefined {
    const form = /^\/(?:api|apis\/([^/]+))\/([^/]+)\/namespaces\/([^/]+)\/([^/]+)(?:\/([^/]+))?(?:\/([^/]+))?$/;
    const [, group = '', version, namespace, plural = '', name, subresource] = form.exec(path) ?? [];
    const resource = this.store.resource(plural, group);
    if (resource === undefined || resource.version !== version || namespace !== this.namespace) return undefined;
    return { resource, name, subresource };
  }

  #carryOut(call: Call): unknown {
    const { method, resource, name } = call;
    const isWrite = method === 'POST' || method === 'PATCH' || method === 'PUT';
    if (isWrite && !this.isOperatorUp && resource.group === 'postgresql.cnpg.io') {
      throw new ApiFailure(webhookDown(resource));
    }
    if (method === 'POST') return this.#create(call);
    if (name === undefined) return this.#list(call);
    const found = this.store.find(resource.plural, name);
    if (found === undefined) throw new ApiFailure(notFound(resource, name));
    if (method === 'PATCH') return this.#patch(call, found);
    if (method === 'DELETE') return this.#remove(call, found);
    return found;
  }

  #create({ resource, body, query }: Call): unknown {
    const given = withOperatorsDefaults(body as KubernetesObject);
    const { namespace = this.namespace } = given.metadata;
    if (namespace !== this.namespace) {
      const message = 'the namespace of the provided object does not match the namespace sent on the request';
      throw new ApiFailure(failure(400, 'BadRequest', message));
    }
    checkObject(resource, given, query.get('fieldValidation') === 'Strict' ? 'create' : null);
    const { status: _, ...withoutStatus } = given as StoredObject;
    const metadata = { ...given.metadata, namespace };
    return this.store.create(resource, asStored({ ...withoutStatus, metadata }));
  }

  #patch({ resource, subresource, body, query, contentType }: Call, found: StoredObject): unknown {
    const { name } = found.metadata;
    const isOfPod = resource.kind === 'Pod' && contentType === 'application/strategic-merge-patch+json';
    if (contentType !== 'application/merge-patch+json' && !isOfPod) {
      const message = `the body of the request was in an unknown format - accepted media types include: ${accepted}`;
      throw new ApiFailure(failure(415, 'UnsupportedMediaType', message));
    }
    const wanted = (body as { metadata?: { resourceVersion?: string } }).metadata?.resourceVersion;
    if (wanted !== undefined && wanted !== found.metadata.resourceVersion) {
      throw new ApiFailure(conflict(resource, name));
    }
    if (subresource === 'resize') return resizePod(this.store, found, body, this.kubeletMood);
    const patched = mergePatched(found, body) as StoredObject;
    // The state of an object has a path of its own, which is the operator's.
    const { status: _, ...rest } = patched;
    const next = withOperatorsDefaults(found.status === undefined ? rest : { ...rest, status: found.status });
    checkObject(resource, next, query.get('fieldValidation') === 'Strict' ? 'patch' : null, found);
    return this.store.update(resource.plural, name, () => asStored(next));
  }

  #remove({ resource, body }: Call, found: StoredObject): unknown {
    const options = (body ?? {}) as {
      propagationPolicy?: string;
      gracePeriodSeconds?: number;
      preconditions?: { uid?: string };
    };
    const { name, uid } = found.metadata;
    const left = this.store.remove(resource.plural, name, {
      foreground: options.propagationPolicy === 'Foreground',
      uid: options.preconditions?.uid,
      force: options.gracePeriodSeconds === 0,
    });
    if (left?.metadata.deletionTimestamp !== undefined && this.store.find(resource.plural, name)) return left;
    const details = { name, group: resource.group, kind: resource.plural, uid };
    return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', details };
  }

  #list({ resource, query }: Call): unknown {
    const selected = this.store.list(resource.plural).filter(isSelected(query.get('labelSelector')));
    const after = query.get('continue') ?? '';
    const limit = Number(query.get('limit') ?? Number.POSITIVE_INFINITY);
    const [version = '', last = ''] = after === '' ? [] : Buffer.from(after, 'base64url').toString().split(' ');
    if (after !== '' && this.store.since(Number(version)) === undefined) {
      const message = 'The provided continue parameter is too old to display a consistent list result.';
      throw new ApiFailure(failure(410, 'Expired', message));
    }
    const rest = selected.filter(({ metadata }) => metadata.name > last);
    const items = rest.slice(0, limit);
    const resourceVersion = version || String(this.store.version);
    const token = Buffer.from(`${resourceVersion} ${items.at(-1)?.metadata.name}`).toString('base64url');
    const metadata = items.length < rest.length ? { resourceVersion, continue: token } : { resourceVersion };
    return { apiVersion: 'v1', kind: `${resource.kind}List`, metadata, items };
  }

  #watch({ resource, query }: Call, outgoing: ServerResponse): void {
    outgoing.writeHead(200, { 'content-type': 'application/json' });
    const since = Number(query.get('resourceVersion'));
    const missed = this.store.since(since);
    const send = (line: object) => outgoing.write(`${JSON.stringify(line)}\n`);
    if (missed === undefined) {
      const message = `too old resource version: ${since} (${this.store.version})`;
      send({ type: 'ERROR', object: failure(410, 'Expired', message).body });
      outgoing.end();
      return;
    }
    const isWanted = isSelected(query.get('labelSelector'));
    const pass = ({ type, plural, object }: StoreEvent) => {
      if (plural === resource.plural && isWanted(object)) send({ type, object });
    };
    for (const event of missed) pass(event);
    const ended = new AbortController();
    let last = this.store.version;
    // An event may be on its way that was among the missed ones.
    const passOnce = (event: StoreEvent) => {
      if (event.version <= last || outgoing.writableEnded) return;
      last = event.version;
      pass(event);
    };
    this.store.onEvent(passOnce, ended.signal);
    outgoing.flushHeaders();
    this.#watches.add(outgoing);
    outgoing.on('close', () => {
      ended.abort();
      this.#watches.delete(outgoing);
    });
  }
}

/** A Secret keeps base64, whatever form it was given in. */
function asStored(object: KubernetesObject): KubernetesObject {
  if (object.kind !== 'Secret') return object;
  const { stringData = {}, data = {}, ...rest } = object as Secret;
  const encoded = Object.entries(stringData).map(([name, text]) => [name, Buffer.from(text).toString('base64')]);
  return { ...rest, data: { ...data, ...Object.fromEntries(encoded) } } as KubernetesObject;
}

function isSelected(selector: string | null): (object: StoredObject) => boolean {
  const wanted = (selector ?? '').split(',').filter((part) => part !== '');
  return ({ metadata }) =>
    wanted.every((part) => {
      const [name = '', value] = part.split('=');
      return metadata.labels?.[name] === value;
    });
}

function reply(outgoing: ServerResponse, code: number, body: unknown): void {
  outgoing.writeHead(code, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}
