/** Connect to a sleeping compute until the first row, beside a bare start of the same Postgres. */
import { join } from 'node:path';
import { copyTemplate, findBuild, prepareSocketDirectory, startBare } from './bare-postgres.mjs';
import { selectOne, startCatnap } from './catnap.mjs';
import { printTable, timed } from './stats.mjs';

const repeats = 30;
const bareName = 'bare: start, SELECT 1';

export async function benchWake() {
  const catnap = await startCatnap();
  try {
    const build = await findBuild(catnap.home);
    const sockets = join(catnap.home, 'bench-sockets');
    const directory = join(catnap.home, 'bench-data');
    await prepareSocketDirectory(sockets);
    await copyTemplate(build, directory);
    const made = await catnap.api('POST', '/projects', { project: {} });
    const connection = { connectionString: made.connection_uris[0].connection_uri };
    const path = `/projects/${made.project.id}/endpoints/${made.endpoints[0].id}`;
    await selectOne(connection);
    const [bare, asleep, awake] = [[], [], []];
    for (let i = 0; i < repeats; i++) {
      let stop;
      bare.push(await timed(async () => (stop = await startBare(build, directory, sockets))));
      await stop();
      await catnap.api('POST', `${path}/suspend`);
      while ((await catnap.api('GET', path)).endpoint.current_state !== 'idle') await pause();
      asleep.push(await timed(() => selectOne(connection)));
      awake.push(await timed(() => selectOne(connection)));
    }
    printTable(
      'Connect until the first row (ms)',
      [
        [bareName, bare],
        ['Catnap: the compute sleeps', asleep],
        ['Catnap: the compute is awake', awake],
      ],
      bareName,
    );
  } finally {
    await catnap.stop();
  }
}

const pause = () => new Promise((resolve) => setTimeout(resolve, 5));
