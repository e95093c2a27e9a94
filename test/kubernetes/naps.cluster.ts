/**
 * 200 naps on the cluster that KUBECONFIG names, each ended by a client: none of them may fail to connect, nor find
 * another value than the one before it has left, while the operator is killed twice.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually, usualTestMs } from '../helpers/eventually.ts';
import { type ChosenCluster, openChosenCluster } from '../helpers/kubernetes-cluster/chosen-cluster.ts';
import { killOperator, type LentProgram, startProgramOn } from '../helpers/kubernetes-cluster/lent-program.ts';
import { ask } from '../helpers/query.ts';

const computeCount = 8;
const napsOfEach = 25;
const killsAt = [60, 140];

let cluster: ChosenCluster;
let lent: LentProgram;

beforeAll(async () => {
  cluster = await openChosenCluster();
  lent = await startProgramOn(cluster);
});
afterAll(async () => {
  await lent.remove();
  cluster.close();
});

interface Napper {
  readonly projectId: string;
  readonly path: string;
  readonly uri: string;
}

async function makeNapper(): Promise<Napper> {
  const { status, body } = await lent.program.api('POST', '/projects', { project: {} });
  expect(status).toBe(201);
  await lent.program.settle(body.project.id, usualTestMs);
  const uri: string = body.connection_uris[0].connection_uri;
  await ask(uri, 'create table naps as select 0 as n');
  return { projectId: body.project.id, path: `/projects/${body.project.id}/endpoints/${body.endpoints[0].id}`, uri };
}

/** Returns when its server has stopped: the operator carries out no fence in the first 25 s after a wake. */
async function nap({ path }: Napper): Promise<void> {
  const { program } = lent;
  expect((await program.api('POST', `${path}/suspend`)).status).toBe(200);
  await eventually(async () => expect((await program.api('GET', path)).body.endpoint.current_state).toBe('idle'));
}

test('a client that wakes a compute from a nap is served, whatever the operator does', async () => {
  const nappers: Napper[] = [];
  for (let made = 0; made < computeCount; made++) nappers.push(await makeNapper());
  const failures: string[] = [];
  const times: number[] = [];
  let wakes = 0;
  const lifeOf = async (napper: Napper) => {
    for (let turn = 1; turn <= napsOfEach; turn++) {
      await nap(napper);
      wakes += 1;
      if (killsAt.includes(wakes)) await killOperator(cluster);
      const began = performance.now();
      const told = await ask(napper.uri, 'update naps set n = n + 1 returning n').catch(
        (error: Error) => error.message,
      );
      times.push(performance.now() - began);
      if (told !== String(turn)) failures.push(`${napper.projectId}, turn ${turn}: ${told}`);
    }
  };
  await Promise.all(nappers.map(lifeOf));
  const sorted = times.toSorted((a, b) => a - b).map((ms) => Math.round(ms));
  process.stdout.write(
    `${times.length} wakes from a nap: ${sorted[times.length >> 1]} ms in the median, ${sorted.at(-1)} at most\n`,
  );
  expect(failures).toEqual([]);
  expect(times).toHaveLength(computeCount * napsOfEach);
  for (const { projectId } of nappers) await lent.program.removeProject(projectId);
  await eventually(async () => expect(await cluster.newcomers()).toEqual([]));
}, 3_600_000);
