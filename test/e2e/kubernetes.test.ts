/**
 * The whole program with computes on the double of a cluster: from a project to nothing left of it. The double is no
 * Kubernetes; its servers are real.
 */
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { wantedDepth } from '../../src/compute/kubernetes/manifests/sleep.ts';
import { type Cluster, pods } from '../../src/compute/kubernetes/objects/kinds.ts';
import { eventually } from '../helpers/eventually.ts';
import { type OpenOperator, openOperator } from '../helpers/kubernetes-double/open-operator.ts';
import { Program } from '../helpers/program.ts';
import { ask } from '../helpers/query.ts';

let double: OpenOperator;
let program: Program;
let folder: string;

beforeAll(async () => {
  double = await openOperator();
  folder = await mkdtemp(join(tmpdir(), 'catnap-kube-'));
  // Its processes run under another uid than the parent.
  await chmod(folder, 0o755);
  const kubeconfig = join(folder, 'kubeconfig');
  const named = 'double';
  const file = {
    'current-context': named,
    contexts: [{ name: named, context: { cluster: named, user: named, namespace: double.double.namespace } }],
    clusters: [{ name: named, cluster: { server: double.server.href } }],
    users: [{ name: named, user: {} }],
  };
  await writeFile(kubeconfig, stringify(file), { mode: 0o644 });
  program = await Program.create({
    CATNAP_DRIVER: 'kubernetes',
    CATNAP_KUBERNETES_CONFIG: kubeconfig,
    CATNAP_KUBERNETES_IMAGE_17: 'registry.test/postgresql:17.6',
    CATNAP_KUBERNETES_VOLUME_SIZE: '1Gi',
    CATNAP_KUBERNETES_DEEP_SLEEP_SECONDS: '0',
  });
  await program.start();
});
afterAll(async () => {
  await program.destroy();
  await double.close();
  await rm(folder, { recursive: true, force: true });
});

const clusters = () => double.double.store.list('clusters') as unknown as readonly Cluster[];
const depths = () => clusters().map(wantedDepth).sort();

test('a project is made, napped, woken, branched and removed, and nothing of it is left in the cluster', async () => {
  const { status, body } = await program.api('POST', '/projects', { project: { name: 'afar' } });
  expect(status).toBe(201);
  const projectId: string = body.project.id;
  const path = `/projects/${projectId}/endpoints/${body.endpoints[0].id}`;
  const uri: string = body.connection_uris[0].connection_uri;
  const stateOf = async (endpoint: string) => (await program.api('GET', endpoint)).body.endpoint.current_state;
  await program.settle(projectId);
  await ask(uri, 'create table t as select 7 as n');
  expect(depths()).toEqual(['awake']);

  await program.api('POST', `${path}/suspend`);
  await eventually(async () => expect(await stateOf(path)).toBe('idle'));
  expect(depths()).toEqual(['nap']);
  // A client wakes it, and no server ran before.
  const [napping] = clusters();
  expect(await double.volumes.find(`${napping?.metadata.name}-1`)).toBeNull();
  expect(await ask(uri, 'select n from t')).toBe('7');
  expect(depths()).toEqual(['awake']);

  // A pod that is replaced has another address, and clients are led there.
  const podName = `${napping?.metadata.name}-1`;
  const podOf = () => double.client().find(pods, podName);
  const before = await podOf();
  await double.client().remove(pods, podName);
  await eventually(async () => {
    const address = (await podOf())?.status?.podIP;
    expect([undefined, before?.status?.podIP]).not.toContain(address);
  });
  await eventually(async () => expect(await ask(uri, 'select n from t')).toBe('7'));

  const branch = { branch: { name: 'copy' }, endpoints: [{ type: 'read_write' }] };
  const made = await program.api('POST', `/projects/${projectId}/branches`, branch);
  expect(made.status).toBe(201);
  await program.settle(projectId);
  const other: string = made.body.connection_uris[0].connection_uri;
  expect(await ask(other, 'update t set n = 8 returning n')).toBe('8');
  expect(await ask(uri, 'select n from t')).toBe('7');
  expect(depths()).toEqual(['awake', 'awake']);

  // A read replica has a server of its own, and answers while its primary naps.
  const replica = { endpoint: { branch_id: body.branch.id, type: 'read_only' } };
  const added = await program.api('POST', `/projects/${projectId}/endpoints`, replica);
  expect(added.status).toBe(201);
  await program.settle(projectId);
  await program.api('POST', `${path}/suspend`);
  await eventually(async () => expect(await stateOf(path)).toBe('idle'));
  const ofReplica = uri.replace(body.endpoints[0].id, added.body.endpoint.id);
  expect(await ask(ofReplica, 'select n from t')).toBe('7');
  await expect(ask(ofReplica, 'update t set n = 8')).rejects.toMatchObject({ code: '25006' });
  expect(depths()).toEqual(['awake', 'awake', 'nap']);

  // What cannot be had is refused before anything of it is recorded.
  const schemaOnly = { branch: { name: 'empty', init_source: 'schema-only' } };
  const refused = await program.api('POST', `/projects/${projectId}/branches`, schemaOnly);
  expect([refused.status, refused.body.message]).toEqual([501, expect.stringContaining('schema-only')]);

  await program.removeProject(projectId);
  const kinds = ['clusters', 'pods', 'services', 'persistentvolumeclaims', 'volumesnapshots', 'secrets'];
  const left = () => kinds.flatMap((kind) => double.double.store.list(kind)).map(({ metadata }) => metadata.name);
  await eventually(() => expect(left()).toEqual([]));
  await eventually(async () => expect(await double.volumes.list()).toEqual([]));
});
