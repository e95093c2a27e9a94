/**
 * How Catnap gets into a cluster: the address of its API server, whom to trust there, and who Catnap is. From a
 * kubeconfig file, or from what Kubernetes mounts into every pod. What Catnap cannot do with a kubeconfig is refused by
 * name: a setting that is silently left out would end in a login that nobody understands.
 */
import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { parse } from 'yaml';

export interface ClusterAccess {
  readonly server: URL;
  readonly namespace: string;
  /** PEM; null trusts what Node trusts. */
  readonly authority: string | null;
  /** A client certificate and its key, PEM. */
  readonly certificate: { readonly cert: string; readonly key: string } | null;
  /** Name to expect in the server's certificate; null for that of the address. */
  readonly serverName: string | null;
  /** Null without a token. Asked again and again, because the kubelet replaces the file of a mounted token. */
  readonly readToken: (() => Promise<string>) | null;
}

interface Named {
  readonly name?: unknown;
}
interface Fields {
  readonly [name: string]: unknown;
}

/** What every pod has, unless its manifest says otherwise. */
const podMount = '/var/run/secrets/kubernetes.io/serviceaccount';

const unusable: Readonly<Record<'cluster' | 'user', readonly string[]>> = {
  cluster: ['insecure-skip-tls-verify', 'proxy-url'],
  user: ['exec', 'auth-provider', 'username', 'password', 'as', 'as-uid', 'as-groups', 'as-user-extra'],
};

/** `context` is a name in the file; without one it is the file's own choice. */
export async function readKubeconfig(path: string, context?: string): Promise<ClusterAccess> {
  const file = asFields(parse(await readGiven(path)), path);
  const wanted = context ?? file['current-context'];
  if (typeof wanted !== 'string' || wanted === '') throw new Error(`${path} names no current-context`);
  const chosen = entryOf(file, { list: 'contexts', part: 'context', name: wanted, path });
  const cluster = entryOf(file, { list: 'clusters', part: 'cluster', name: chosen.cluster, path });
  const user = entryOf(file, { list: 'users', part: 'user', name: chosen.user, path });
  refuseUnusable(cluster, 'cluster', path);
  refuseUnusable(user, 'user', path);
  const pem = (fields: Fields, name: string) => pemOf(fields, name, path);
  const [cert, key] = [await pem(user, 'client-certificate'), await pem(user, 'client-key')];
  if ((cert === null) !== (key === null)) throw new Error(`${path} has only one of client-certificate and client-key`);
  return checked({
    server: serverOf(textOf(cluster, 'server') ?? '', path),
    namespace: textOf(chosen, 'namespace') ?? 'default',
    authority: await pem(cluster, 'certificate-authority'),
    certificate: cert === null || key === null ? null : { cert, key },
    serverName: textOf(cluster, 'tls-server-name'),
    readToken: tokenOf(user, path),
  });
}

/** `host` and `port` are KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT. */
export async function readPodAccess(host: string, port: string, mount: string = podMount): Promise<ClusterAccess> {
  const read = (name: string) => readFile(resolve(mount, name), 'utf8');
  return checked({
    server: serverOf(`https://${host.includes(':') ? `[${host}]` : host}:${port}`, 'the environment'),
    namespace: (await read('namespace')).trim(),
    authority: await read('ca.crt'),
    certificate: null,
    serverName: null,
    readToken: async () => (await read('token')).trim(),
  });
}

/** A file of the person who starts Catnap, whose processes run as another user if that person is root. */
async function readGiven(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') throw new Error(`there is no file ${path}`, { cause: error });
    if (code !== 'EACCES') throw error;
    const hint = 'give Catnap a copy that this user may read';
    throw new Error(`${path} cannot be read by the user that Catnap runs as (uid ${process.getuid?.()}): ${hint}`, {
      cause: error,
    });
  }
}

function entryOf(
  file: Fields,
  { list, part, name, path }: { list: string; part: string; name: unknown; path: string },
): Fields {
  const entries: unknown = file[list];
  const found = Array.isArray(entries) ? entries.find((entry: Named | null) => entry?.name === name) : undefined;
  if (found === undefined) throw new Error(`${path} has no entry ${JSON.stringify(name)} in ${list}`);
  return asFields(found[part], path);
}

function asFields(value: unknown, path: string): Fields {
  if (typeof value !== 'object' || value === null) throw new Error(`${path} is no kubeconfig`);
  return value as Fields;
}

function refuseUnusable(fields: Fields, kind: 'cluster' | 'user', path: string): void {
  const found = unusable[kind].filter((name) => fields[name] !== undefined && fields[name] !== false);
  if (found.length === 0) return;
  const use = kind === 'user' ? 'a token or a client certificate' : 'certificate-authority and a direct address';
  throw new Error(`${path}: Catnap does not support ${found.join(', ')} of a ${kind}; use ${use}`);
}

function textOf(fields: Fields, name: string): string | null {
  const value = fields[name];
  return typeof value === 'string' && value !== '' ? value : null;
}

/** Inline as base64 in `<name>-data`, which wins as it does for kubectl, or in a file beside the kubeconfig. */
async function pemOf(fields: Fields, name: string, path: string): Promise<string | null> {
  const inline = textOf(fields, `${name}-data`);
  if (inline !== null) return Buffer.from(inline, 'base64').toString('utf8');
  const file = textOf(fields, name);
  return file === null ? null : readGiven(resolve(dirname(path), file));
}

function tokenOf(user: Fields, path: string): ClusterAccess['readToken'] {
  const token = textOf(user, 'token');
  const file = textOf(user, 'tokenFile');
  if (file !== null) return async () => (await readGiven(resolve(dirname(path), file))).trim();
  return token === null ? null : async () => token;
}

function serverOf(text: string, path: string): URL {
  const server = URL.canParse(text) ? new URL(text) : null;
  if (server === null || !/^https?:$/.test(server.protocol)) {
    throw new Error(`${path} has no usable address of an API server: ${JSON.stringify(text)}`);
  }
  return server;
}

/** A token is as good as a password, and whoever is on the way could read it. */
function checked(access: ClusterAccess): ClusterAccess {
  if (access.server.protocol === 'http:' && access.readToken !== null) {
    throw new Error(`${access.server.origin} is not encrypted: Catnap sends its token over https only`);
  }
  return access;
}
