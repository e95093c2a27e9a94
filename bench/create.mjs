/** From the POST that creates a project to the first row, beside a bare copy of the template and its start. */
import { join } from 'node:path';
import { copyTemplate, findBuild, prepareSocketDirectory, startBare } from './bare-postgres.mjs';
import { selectOne, startCatnap } from './catnap.mjs';
import { keep } from './measures.mjs';
import { printTable, summarize, timed } from './stats.mjs';

const repeats = 15;
const [callers, createsATurn, rateTurns] = [8, 16, 5];
const bareName = 'bare: copy the template, start, SELECT 1';

export async function benchCreate() {
  const catnap = await startCatnap();
  try {
    const build = await findBuild(catnap.home);
    const sockets = join(catnap.home, 'bench-sockets');
    await prepareSocketDirectory(sockets);
    const [bare, request, whole] = [[], [], []];
    for (let i = 0; i < repeats; i++) {
      const directory = join(catnap.home, `bench-${i}`);
      let stop;
      bare.push(
        await timed(async () => {
          await copyTemplate(build, directory);
          stop = await startBare(build, directory, sockets);
        }),
      );
      await stop();
      let made;
      const startedAt = performance.now();
      request.push(await timed(async () => (made = await catnap.api('POST', '/projects', { project: {} }))));
      await selectOne({ connectionString: made.connection_uris[0].connection_uri });
      whole.push(performance.now() - startedAt);
      await catnap.api('DELETE', `/projects/${made.project.id}`);
      await catnap.api('POST', `/projects/${made.project.id}/purge`);
    }
    keep({
      what: 'create a project until its first row',
      unit: 'ms',
      ours: whole,
      peer: bare,
      beside: 'a bare copy and start',
    });
    keep({ what: 'create a project until its first row, in ms', unit: 'ms', ours: whole, atMost: 150 });
    await measureRate(catnap);
    printTable(
      'Create a project (ms)',
      [
        [bareName, bare],
        ['Catnap: the reply to POST /projects', request],
        ['Catnap: until SELECT 1 has answered', whole],
      ],
      bareName,
    );
  } finally {
    await catnap.stop();
  }
}

/** Several callers, each of which makes its next project as soon as it has the first row of the last. */
async function measureRate(catnap) {
  const rates = [];
  for (let turn = 0; turn < rateTurns; turn++) {
    const made = [];
    const startedAt = performance.now();
    const call = async () => {
      while (made.length < createsATurn) {
        const place = made.push(null) - 1;
        made[place] = await catnap.api('POST', '/projects', { project: {} });
        await selectOne({ connectionString: made[place].connection_uris[0].connection_uri });
      }
    };
    await Promise.all(Array.from({ length: callers }, call));
    rates.push((made.length * 1_000) / (performance.now() - startedAt));
    for (const { project } of made) {
      await catnap.api('DELETE', `/projects/${project.id}`);
      await catnap.api('POST', `/projects/${project.id}/purge`);
    }
  }
  const { median, min, max } = summarize(rates);
  console.log(
    `\n${callers} callers: ${median.toFixed(1)} projects a second with their first rows (${min.toFixed(1)}–${max.toFixed(1)})`,
  );
  keep({ what: `projects created a second, ${callers} callers`, unit: '/s', ours: rates, atLeast: 10 });
}
