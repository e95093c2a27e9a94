/** docs/reliability.md, made from what the long runs and the list of found bugs in `docs/reliability` say. Pure. */
import { table } from './render-docs.mjs';

/** What each run does, in the order of the chapters. A run that has left no figures yet has no chapter. */
const chapters = {
  chaos: {
    title: 'Faults',
    command: 'npm run chaos',
    what: `Random work through the API and real clients, while processes are killed or stopped, disks fill and clocks
jump. After each fault every row that was acknowledged is looked for, and the machine for what nobody owns.`,
  },
  pieces: {
    title: 'Two of each',
    command: 'npm run pieces',
    what: `Two APIs, two workers and two proxies on one system database elsewhere, any of them killed at any time, all of
them restarted in turn now and then. Beside the random work and the writers of the faults above, pooled clients have
transactions of several statements, and a caller repeats requests with their key until they are answered. A rolling
restart that costs a request to the API, or breaks a transaction off that has begun, fails the run.`,
  },
  simulation: {
    title: 'Schedules of the operation queue',
    command: 'npm run simulation',
    what: `The queue, its workers and the commands on a real system database with the fake driver, in an order that the
seed decides, with failures and crashes in between. A schedule that breaks an invariant is shrunk and printed. Calls of
the driver, transactions and single statements run into each other at every point, statements within a transaction now
and then. The local driver, notifications, heartbeats and auth integrations have no part in it.`,
  },
  'fuzz-api': {
    title: 'Requests to the API',
    command: 'npm run fuzz',
    what: 'Requests made from the OpenAPI document, valid, nearly valid and wild.',
  },
  'fuzz-postgres': {
    title: 'Bytes to the Postgres port and to SQL over HTTP',
    command: 'npm run fuzz',
    what: 'Startup packets, logins, pooled frames in every order, and bodies for `/sql`.',
  },
  isolation: {
    title: 'Isolation',
    command: 'npm run isolation',
    what: `Every route with every kind of key and ids of somebody else, ways out of SQL, scripts in names and cells,
addresses that no webhook may reach, and neighbours that take all they can get.`,
  },
};

export function renderReliability({ ledgers, bugs }) {
  const unknown = ledgers.find(({ name }) => !(name in chapters));
  if (unknown !== undefined) throw new Error(`docs/reliability/${unknown.name}.json belongs to no chapter`);
  const found = Object.keys(chapters).flatMap((name) => ledgers.filter((ledger) => ledger.name === name));
  return `# Reliability

Written by \`npm run generate\` from the files in \`docs/reliability\`, which the long runs leave with \`--write\`; do not
edit. What is promised, and what is not, is in [SECURITY.md](../SECURITY.md) and [operating.md](operating.md).

${found.map(renderChapter).join('\n\n')}

## What the runs have found

${renderBugs(bugs)}
`;
}

function renderChapter({ name, date, commit, machine, seed, seconds, totals, tables }) {
  const { title, command, what } = chapters[name];
  const counts = Object.entries(totals).map(([of, count]) => [of, figure(count)]);
  return `## ${title}

${what}

\`${command} -- --seed=${seed}\`, ${duration(seconds)} on ${date} at \`${commit}\` (${machine}).

${table(['', 'count'], counts)}${tables.map(renderTable).join('')}`;
}

function renderTable({ title, columns, rows }) {
  return `\n\n### ${title}\n\n${table(
    columns,
    rows.map((row) => row.map((cell) => (typeof cell === 'number' ? figure(cell) : cell))),
  )}`;
}

function renderBugs(bugs) {
  if (bugs.length === 0) return 'Nothing yet.';
  return table(
    ['bug', 'found by', 'mended in'],
    bugs.map(({ bug, foundBy, commit }) => [bug, foundBy, commit === null ? 'open' : `\`${commit}\``]),
  );
}

function figure(count) {
  return count.toLocaleString('en-US', { maximumFractionDigits: 3 });
}

function duration(seconds) {
  return seconds < 120 ? `${Math.round(seconds)} seconds` : `${Math.round(seconds / 60)} minutes`;
}
