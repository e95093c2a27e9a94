/**
 * The whole program with computes on the cluster that KUBECONFIG names: a project from its first query to nothing left
 * of it, with a pod and the operator killed in between. Each test goes on where the one before it ended.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { labelsOfProject } from '../../src/compute/kubernetes/manifests/labels.ts';
import { wantedDepth } from '../../src/compute/kubernetes/manifests/sleep.ts';
import { clusters, pods } from '../../src/compute/kubernetes/objects/kinds.ts';
import { asProjectId } from '../../src/lib/ids.ts';
import { eventually, usualTestMs } from '../helpers/eventually.ts';
import { type ChosenCluster, openChosenCluster } from '../helpers/kubernetes-cluster/chosen-cluster.ts';
import {
  killOperator,
  type LentProgram,
  startProgramOn,
  withoutOperator,
} from '../helpers/kubernetes-cluster/lent-program.ts';
import type { Program } from '../helpers/program.ts';
import { ask } from '../helpers/query.ts';

let cluster: ChosenCluster;
let lent: LentProgram;
let program: Program;
let projectId: string;
let branchId: string;
let path: string;
let uri: string;

beforeAll(async () => {
  cluster = await openChosenCluster();
  lent = await startProgramOn(cluster);
  program = lent.program;
});
afterAll(async () => {
  await lent.remove();
  cluster.close();
});

const labels = () => labelsOfProject({ projectId: asProjectId(projectId) });
const depths = async () => (await cluster.client.list(clusters, labels())).items.map(wantedDepth).sort();
/** Those of servers: the operator also makes some that fill a volume and end. */
const podsOf = async () => (await cluster.client.list(pods, { ...labels(), 'cnpg.io/podRole': 'instance' })).items;
const stateOf = async () => (await program.api('GET', path)).body.endpoint.current_state;
const lastStart = async () => {
  const { body } = await program.api('GET', `/projects/${projectId}/operations`);
  return body.operations.find(({ action }: { action: string }) => action === 'start_compute');
};
const suspend = async () => {
  expect((await program.api('POST', `${path}/suspend`)).status).toBe(200);
  await eventually(async () => expect(await stateOf()).toBe('idle'));
};

describe('a project on a cluster', () => {
  test('is made, and answers', async () => {
    const { status, body } = await program.api('POST', '/projects', { project: { name: 'afar' } });
    expect(status).toBe(201);
    projectId = body.project.id;
    branchId = body.branch.id;
    path = `/projects/${projectId}/endpoints/${body.endpoints[0].id}`;
    uri = body.connection_uris[0].connection_uri;
    await program.settle(projectId, usualTestMs);
    await ask(uri, 'create table t as select 7 as n');
    expect(await depths()).toEqual(['awake']);
  });

  test('naps, and a client wakes it in the same pod', async () => {
    const [before] = await podsOf();
    await suspend();
    expect(await depths()).toEqual(['nap']);
    expect(await ask(uri, 'select n from t')).toBe('7');
    expect(await depths()).toEqual(['awake']);
    expect((await podsOf()).map(({ metadata }) => metadata.uid)).toEqual([before?.metadata.uid]);
  });

  test('gets another size without a new pod', async () => {
    const [before] = await podsOf();
    const endpoint = { autoscaling_limit_min_cu: 0.5, autoscaling_limit_max_cu: 0.5 };
    expect((await program.api('PATCH', path, { endpoint })).status).toBe(200);
    await program.settle(projectId);
    await eventually(async () => {
      const [pod] = await podsOf();
      expect(pod?.metadata.uid).toBe(before?.metadata.uid);
      expect(pod?.status?.containerStatuses?.[0]?.resources?.limits.cpu).toBe('500m');
    });
    expect(await ask(uri, 'select n from t')).toBe('7');
  });

  test('has a branch that goes its own way', async () => {
    // Storage that copies file by file needs a source that writes nothing meanwhile.
    await suspend();
    const branch = { branch: { name: 'copy' }, endpoints: [{ type: 'read_write' }] };
    const { status, body } = await program.api('POST', `/projects/${projectId}/branches`, branch);
    expect(status).toBe(201);
    await program.settle(projectId, usualTestMs);
    expect(await ask(body.connection_uris[0].connection_uri, 'update t set n = 8 returning n')).toBe('8');
    expect(await ask(uri, 'select n from t')).toBe('7');
    // For good: one that can be recovered keeps its Cluster.
    const gone = `/projects/${projectId}/branches/${body.branch.id}?hard_delete=true`;
    expect((await program.api('DELETE', gone)).status).toBe(200);
    await program.settle(projectId, usualTestMs);
  });

  test('has a read replica that follows it, answers while it naps, and goes without a trace', async () => {
    const endpoint = { branch_id: branchId, type: 'read_only' };
    const { status, body } = await program.api('POST', `/projects/${projectId}/endpoints`, { endpoint });
    expect(status).toBe(201);
    await program.settle(projectId, usualTestMs);
    const ofReplica = uri.replace(path.split('/').at(-1) ?? '', body.endpoint.id);
    expect(await ask(ofReplica, 'select n from t')).toBe('7');
    await ask(uri, 'update t set n = 9');
    await eventually(async () => expect(await ask(ofReplica, 'select n from t')).toBe('9'));
    await suspend();
    expect(await ask(ofReplica, 'select n from t')).toBe('9');
    await ask(uri, 'update t set n = 7');
    await eventually(async () => expect(await ask(ofReplica, 'select n from t')).toBe('7'));
    await program.api('DELETE', `/projects/${projectId}/endpoints/${body.endpoint.id}`);
    await program.settle(projectId, usualTestMs);
    expect(await depths()).toEqual(['awake']);
  });

  test('answers again after its pod was deleted', async () => {
    const [pod] = await podsOf();
    if (pod === undefined) throw new Error('an awake compute has a pod');
    await cluster.client.remove(pods, pod.metadata.name);
    await eventually(async () => {
      const [other] = await podsOf();
      expect(other?.metadata.uid).not.toBe(pod.metadata.uid);
      expect(await ask(uri, 'select n from t')).toBe('7');
    });
  });

  test('is woken although the operator was killed while it napped', async () => {
    await suspend();
    await killOperator(cluster);
    await eventually(async () => expect(await ask(uri, 'select n from t')).toBe('7'));
  });

  test('tells a client that there is no operator, and is woken when there is one again', async () => {
    await suspend();
    await withoutOperator(cluster, async () => {
      await expect(ask(uri, 'select n from t')).rejects.toThrow(/did not wake within \d+ seconds/);
      // Longer than a start may take that meets no outage.
      await eventually(async () => {
        const { created_at, updated_at } = await lastStart();
        expect(Date.parse(updated_at) - Date.parse(created_at)).toBeGreaterThan(130_000);
      });
    });
    const { id } = await lastStart();
    await eventually(async () => expect(await stateOf()).toBe('active'));
    // By the wake that the client asked for, which goes on without it.
    expect(await lastStart()).toMatchObject({ id, status: 'finished' });
    expect(await ask(uri, 'select n from t')).toBe('7');
  });

  test('is removed, and nothing of it is left', async () => {
    await program.removeProject(projectId);
    await eventually(async () => expect(await cluster.newcomers()).toEqual([]));
  });
});
