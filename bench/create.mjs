/**
 * From the POST that creates a project to the first row, beside a bare copy of the template and its start; and how many
 * several callers make in a second. On the filesystem of the temporary directory, and as root on an XFS image too:
 * BENCH_CREATE_ON (plain,xfs) chooses.
 */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { copyTemplate, findBuild, prepareSocketDirectory, startBare } from './bare-postgres.mjs';
import { places, selectOne, withCatnapOn } from './catnap.mjs';
import { keep } from './measures.mjs';
import { printTable, summarize, timed } from './stats.mjs';

const repeats = 15;
const [callers, createsATurn, rateTurns] = [8, 32, 5];
const bareName = 'bare: copy the template, start, SELECT 1';

const usual = process.getuid() === 0 ? places.join(',') : 'plain';
const chosen = (process.env.BENCH_CREATE_ON ?? usual).split(',');
const imageGb = 12;
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export async function benchCreate() {
  for (const place of chosen) await withCatnapOn(place, imageGb, (catnap) => measureOn(place, catnap));
}

async function measureOn(place, catnap) {
  const root = place === 'xfs' ? join(catnap.home, 'storage') : catnap.home;
  const on = place === 'xfs' ? ' on XFS' : '';
  const build = await findBuild(catnap.home, 17, root);
  const sockets = join(catnap.home, 'bench-sockets');
  await prepareSocketDirectory(sockets);
  const [bare, request, whole] = [[], [], []];
  for (let i = 0; i < repeats; i++) {
    const directory = join(root, `bench-${i}`);
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
    await removeProject(catnap, made);
  }
  const what = `create a project until its first row${on}`;
  keep({ what, unit: 'ms', ours: whole, peer: bare, beside: 'a bare copy and start' });
  keep({ what: `${what}, in ms`, unit: 'ms', ours: whole, atMost: 150 });
  await measureRate(catnap, root, on);
  printTable(
    `Create a project${on} (ms)`,
    [
      [bareName, bare],
      ['Catnap: the reply to POST /projects', request],
      ['Catnap: until SELECT 1 has answered', whole],
    ],
    bareName,
  );
}

async function removeProject(catnap, { project }) {
  await catnap.api('DELETE', `/projects/${project.id}`);
  await catnap.api('POST', `/projects/${project.id}/purge`);
}

/**
 * Several callers, each of which makes its next project as soon as it has the first row of the last. What was made is
 * removed between two turns, which is work that nobody who creates projects has beside it.
 */
async function measureRate(catnap, root, on) {
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
    for (const each of made) await removeProject(catnap, each);
    while ((await namesIn(root, 'projects')) + (await namesIn(root, 'trash')) > 0) await pause(100);
  }
  const { median, min, max } = summarize(rates);
  console.log(
    `\n${callers} callers: ${median.toFixed(1)} projects a second with their first rows (${min.toFixed(1)}–${max.toFixed(1)})${on}`,
  );
  keep({ what: `projects created a second${on}, ${callers} callers`, unit: '/s', ours: rates, atLeast: 10 });
}

const namesIn = async (root, folder) => (await readdir(join(root, folder))).length;
