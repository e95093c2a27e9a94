/** Connect to a sleeping compute until the first row, beside a bare start of the same Postgres. */
import { join } from 'node:path';
import { copyTemplate, findBuild, prepareSocketDirectory, startBare } from './bare-postgres.mjs';
import { selectOne, startCatnap } from './catnap.mjs';
import { printTable, timed } from './stats.mjs';

const repeats = 30;
const bareName = 'bare: start, SELECT 1';

export async function benchWake() {
  const stages = collectStages();
  const catnap = await startCatnap({ CATNAP_LOG_LEVEL: 'debug' }, stages.onLog);
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
      await pause(200);
      stages.begin();
      asleep.push(await timed(() => selectOne(connection)));
      await stages.end(asleep.at(-1));
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
    printTable('Stages of a wake (ms)', stages.rows());
  } finally {
    await catnap.stop();
  }
}

const pause = (ms = 5) => new Promise((resolve) => setTimeout(resolve, ms));

/** What Catnap's own log tells about each wake, in the order in which it happens. */
function collectStages() {
  const names = ['lookup', 'authenticate', 'queue', 'fence', 'spawn', 'ready', 'open route', 'login', 'first row'];
  const values = new Map(names.map((name) => [name, []]));
  let lines = null;
  return {
    onLog: (line) => lines?.push(line),
    begin: () => {
      lines = [];
    },
    end: async (totalMs) => {
      const find = (msg, step) => lines.find((line) => line.msg === msg && (step === undefined || line.step === step));
      while (!find('a step was run', 'open_route') || !find('a session began')) await pause();
      const { authenticationMs, connectMs } = find('a session began');
      const { ms: lookup } = find('a login was looked up');
      const { ms: wake } = find('a compute is awake');
      const step = (name) => find('a step was run', name).ms;
      const steps = { fence: step('fence'), spawn: step('spawn'), ready: step('await_ready') };
      const opening = step('open_route');
      const before = steps.fence + steps.spawn + steps.ready;
      const queue = find('a compute is awake').queuedMs + Math.max(0, find('an operation was claimed').waitedMs);
      const measured = {
        lookup,
        authenticate: authenticationMs - lookup,
        queue,
        ...steps,
        // Until the proxy has heard of it; the records of each step are part of this.
        'open route': Math.max(opening, wake - queue - before),
        login: connectMs - wake,
        'first row': totalMs - authenticationMs - connectMs,
      };
      lines = null;
      for (const name of names) values.get(name).push(measured[name]);
    },
    rows: () => names.map((name) => [name, values.get(name)]),
  };
}
