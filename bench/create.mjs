/** From the POST that creates a project to the first row, beside a bare copy of the template and its start. */
import { join } from 'node:path';
import { copyTemplate, findBuild, prepareSocketDirectory, startBare } from './bare-postgres.mjs';
import { selectOne, startCatnap } from './catnap.mjs';
import { printTable, timed } from './stats.mjs';

const repeats = 15;
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
