import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { readKubeconfig, readPodAccess } from '../../src/compute/kubernetes/client/access.ts';
import { KubernetesClient } from '../../src/compute/kubernetes/client/client.ts';
import { secrets } from '../../src/compute/kubernetes/objects/kinds.ts';
import { ensureCertificates } from '../../src/lib/certificates.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { type OpenDouble, openDouble, testPatience } from '../helpers/kubernetes-double/open-double.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cn-kube-'));
});
afterEach(() => rm(folder, { recursive: true }));

const base64 = (text: string) => Buffer.from(text).toString('base64');

interface Parts {
  readonly cluster?: object;
  readonly user?: object;
  readonly context?: object;
}

/** JSON is YAML, too. */
async function kubeconfig({ cluster, user, context }: Parts): Promise<string> {
  const path = join(folder, 'config');
  const file = {
    'current-context': 'here',
    contexts: [
      { name: 'elsewhere', context: { cluster: 'none', user: 'none' } },
      { name: 'here', context: { cluster: 'c', user: 'u', ...context } },
    ],
    clusters: [{ name: 'c', cluster: { server: 'https://10.0.0.1:6443', ...cluster } }],
    users: [{ name: 'u', user: { ...user } }],
  };
  await writeFile(path, JSON.stringify(file));
  return path;
}

describe('a kubeconfig', () => {
  test('that is not there is named, and so is a file beside it', async () => {
    const missing = join(folder, 'none');
    await expect(readKubeconfig(missing)).rejects.toThrow(`there is no file ${missing}`);
    const path = await kubeconfig({ cluster: { 'certificate-authority': 'ca.pem' } });
    await expect(readKubeconfig(path)).rejects.toThrow(`there is no file ${join(folder, 'ca.pem')}`);
  });

  test.skipIf(process.getuid?.() === 0)('that Catnap may not read says who may not', async () => {
    const path = await kubeconfig({});
    await chmod(path, 0);
    await expect(readKubeconfig(path)).rejects.toThrow(`cannot be read by the user that Catnap runs as (uid`);
  });

  test('is read as kubectl writes it', async () => {
    const path = join(folder, 'config');
    await writeFile(
      path,
      `apiVersion: v1
kind: Config
current-context: kind-one
contexts:
- context: {cluster: kind-one, user: admin, namespace: computes}
  name: kind-one
clusters:
- cluster:
    certificate-authority-data: ${base64('the authority')}
    server: https://127.0.0.1:40123
    tls-server-name: kubernetes
  name: kind-one
users:
- name: admin
  user:
    client-certificate-data: ${base64('the certificate')}
    client-key-data: ${base64('the key')}
`,
    );
    expect(await readKubeconfig(path)).toEqual({
      server: new URL('https://127.0.0.1:40123'),
      namespace: 'computes',
      authority: 'the authority',
      certificate: { cert: 'the certificate', key: 'the key' },
      serverName: 'kubernetes',
      readToken: null,
    });
  });

  test('may name files, relative to itself, and a token that changes in its file', async () => {
    await writeFile(join(folder, 'ca.crt'), 'an authority');
    await writeFile(join(folder, 'token'), 'first\n');
    const parts = { cluster: { 'certificate-authority': 'ca.crt' }, user: { tokenFile: 'token' } };
    const access = await readKubeconfig(await kubeconfig(parts));
    expect(access).toMatchObject({ authority: 'an authority', namespace: 'default', certificate: null });
    expect(await access.readToken?.()).toBe('first');
    await writeFile(join(folder, 'token'), 'second\n');
    expect(await access.readToken?.()).toBe('second');
  });

  test.each<[string, Parts, RegExp]>([
    ['a program that logs in', { user: { exec: { command: 'aws' } } }, /does not support exec of a user; use a token/],
    ['a password', { user: { username: 'a', password: 'b' } }, /username, password of a user/],
    [
      'no check of certificates',
      { cluster: { 'insecure-skip-tls-verify': true } },
      /insecure-skip-tls-verify of a cluster/,
    ],
    ['a key without a certificate', { user: { 'client-key-data': base64('k') } }, /only one of/],
    [
      'a token that anybody could read',
      { cluster: { server: 'http://10.0.0.1' }, user: { token: 't' } },
      /over https only/,
    ],
    ['an unknown user', { context: { user: 'nobody' } }, /no entry "nobody" in users/],
    ['no address', { cluster: { server: 'here' } }, /no usable address/],
  ])('with %s is refused, by name', async (_, parts, message) => {
    await expect(readKubeconfig(await kubeconfig(parts))).rejects.toThrow(message);
  });

  test('without a context of that name is refused', async () => {
    await expect(readKubeconfig(await kubeconfig({}), 'nowhere')).rejects.toThrow(/no entry "nowhere" in contexts/);
  });
});

test('in a pod, access is what Kubernetes mounts there', async () => {
  const mount = join(folder, 'mount');
  await mkdir(mount);
  for (const [name, text] of [
    ['namespace', 'computes\n'],
    ['ca.crt', 'an authority'],
    ['token', 'secret\n'],
  ] as const) {
    await writeFile(join(mount, name), text);
  }
  const access = await readPodAccess('fd00::1', '443', mount);
  expect(access).toMatchObject({ namespace: 'computes', authority: 'an authority', certificate: null });
  expect(access.server.href).toBe('https://[fd00::1]/');
  expect(await access.readToken?.()).toBe('secret');
});

describe('over TLS', () => {
  let open: OpenDouble;
  let authority: string;
  const opened: KubernetesClient[] = [];
  beforeEach(async () => {
    const made = await ensureCertificates({ directory: folder, domain: 'test', region: 'here', clock: systemClock });
    authority = await readFile(made.caPath, 'utf8');
    open = await openDouble({ tls: { key: made.key, cert: made.cert } });
  });
  afterEach(async () => {
    for (const client of opened.splice(0)) client.close();
    await open.close();
  });

  const connect = async (cluster: object) => {
    const server = open.server.origin;
    const path = await kubeconfig({
      cluster: { server, ...cluster },
      user: { token: 'secret' },
      context: { namespace: 'computes' },
    });
    const client = new KubernetesClient(await readKubeconfig(path), { patience: testPatience });
    opened.push(client);
    return client;
  };

  test('a server that its authority vouches for is given the token', async () => {
    const trusting = await connect({ 'certificate-authority-data': base64(authority) });
    expect((await trusting.list(secrets)).items).toEqual([]);
    expect(open.double.requests).toMatchObject([{ authorization: 'Bearer secret' }]);
  });

  test('another one is given nothing, and not asked again', async () => {
    const wary = await connect({});
    await expect(wary.list(secrets)).rejects.toMatchObject({ verdict: 'refused', status: 0 });
    const elsewhere = await connect({
      'certificate-authority-data': base64(authority),
      'tls-server-name': 'another.example',
    });
    await expect(elsewhere.list(secrets)).rejects.toMatchObject({ verdict: 'refused', status: 0 });
    expect(open.double.requests).toEqual([]);
  });
});
