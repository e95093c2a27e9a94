/** docs/compatibility.md, made from the contract, the table of routes, and the results of foreign clients and suites. Pure. */
import { addressOf } from './published-api.mjs';
import { table } from './render-docs.mjs';

export function renderCompatibility({ operations, packages, routes, clients, suites }) {
  const groups = groupsOf(operations, routes);
  const sources = packages.map(({ name, version }) => `\`${name}\` ${version}`).join(' and ');
  return `# Compatibility

Written by \`npm run generate\` from the routes, the published contract and the files in \`docs/compatibility\`; do not
edit. How Catnap's answers differ from the hosted service's, and what it adds, is in [api.md](api.md).

## Operations

The contract is every operation in ${sources}. Each one is served and its replies conform, or it is answered with 501
and the reason, after the key and the project have been checked.

${countsTable(groups)}

${groups.map(renderGroup).join('\n\n')}

## Command lines and SDKs

Programs made for the hosted service, unmodified. What runs in the tests does its work, or is answered with 501 and the
client shows the reason. The command lines run all of it with \`CATNAP_TEST_CLIS=all\`; in a normal run they share it.

${renderClients(clients)}

## Suites of other projects

Each suite is run against a plain Postgres server of the same build (control), and against the direct and the pooled
host of a compute. A cell is the number of tests that passed; of the server's regression files, the number whose output
is the control's, numbers of objects left out. Those of pgx and pgjdbc are programs of ours.

${renderSuites(suites)}
`;
}

function groupsOf(operations, routes) {
  const byAddress = new Map(
    routes.map((route) => [addressOf({ ...route, path: route.url.slice(prefix.length) }), route]),
  );
  const groups = new Map();
  for (const operation of operations) {
    const route = byAddress.get(addressOf(operation));
    if (route === undefined) throw new Error(`${operation.operationId} has no route and no reason for that`);
    const group = groups.get(operation.group) ?? {
      title: operation.group,
      served: [],
      list: [],
      thing: [],
      refused: new Map(),
    };
    groups.set(operation.group, group);
    if (route.notOffered === undefined) group[route.absent ?? 'served'].push(operation.operationId);
    else group.refused.set(route.notOffered, [...(group.refused.get(route.notOffered) ?? []), operation.operationId]);
  }
  return [...groups.values()];
}

const prefix = '/api/v2';
const countServed = (group) => group.served.length + group.list.length + group.thing.length;
const countRefused = (group) => [...group.refused.values()].flat().length;
const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);

function countsTable(groups) {
  const row = (title, served, refused) => [title, served + refused, served, refused].map(String);
  const rows = groups.map((group) => row(group.title, countServed(group), countRefused(group)));
  const total = row('**All**', sum(groups.map(countServed)), sum(groups.map(countRefused)));
  return table(['Group', 'Operations', 'Served', '501'], [...rows, total]);
}

function renderGroup({ title, served, list: lists, thing: things, refused }) {
  const list = (names) => names.map((name) => `\`${name}\``).join(', ');
  const reasons = [...refused].map(
    ([{ why, isPlanned }, names]) => `- 501${isPlanned ? ' for now' : ''}, ${why}: ${list(names)}`,
  );
  const lines = [
    ...(served.length > 0 ? [`- Served: ${list(served)}`] : []),
    ...(lists.length > 0 ? [`- Served, always an empty list: ${list(lists)}`] : []),
    ...(things.length > 0 ? [`- Served, always 404, since there is none: ${list(things)}`] : []),
    ...reasons,
  ];
  return [`### ${title}`, '', ...lines].join('\n');
}

function renderClients(clients) {
  const count = (groups) => sum(groups.map(({ names }) => names.length));
  const rows = clients.map(({ name, version, served, refused, failing, notRun }) => {
    const ran = served.length + refused.length + count(failing);
    return [name, version, ran + count(notRun), ran, refused.length, count(notRun)].map(String);
  });
  const columns = ['Client', 'Version', 'Commands or methods', 'Run in tests', 'Of them 501', 'Not run'];
  return [table(columns, rows), ...clients.map(renderClient)].join('\n\n');
}

function renderClient({ name, version, served, refused, failing, notRun }) {
  const list = (names) => names.map((one) => `\`${one}\``).join(', ');
  const lines = [
    `- Served: ${list(served)}`,
    ...(refused.length > 0 ? [`- 501: ${list(refused)}`] : []),
    ...failing.map(({ why, names }) => `- Fails ${why}: ${list(names)}`),
    ...notRun.map(({ why, names }) => `- Not run, ${why}: ${list(names)}`),
  ];
  return [`### ${name} ${version}`, '', ...lines].join('\n');
}

function renderSuites(suites) {
  if (suites.length === 0) return 'No results are recorded yet.';
  const cell = (passed) => (passed === null ? 'not finished' : String(passed));
  const rows = suites.map(({ name, version, tests, control, direct, pooled, date }) => [
    name,
    version,
    String(tests),
    ...[control, direct, pooled].map(cell),
    date,
  ]);
  const differences = suites
    .filter((suite) => suite.differences.length > 0)
    .map(
      ({ name, differences: found }) =>
        `### ${name}\n\n${table(
          ['Difference', 'Why'],
          found.map(({ what, why }) => [what, why]),
        )}`,
    );
  return [table(['Suite', 'Version', 'Tests', 'Control', 'Direct', 'Pooled', 'Date'], rows), ...differences].join(
    '\n\n',
  );
}
