/**
 * docs/scaling.md, made from what `npm run bench -- scale --write` left in docs/performance: what each thing that
 * people do asks of the system database, and how far one such database goes. Pure.
 */
import { table } from './render-docs.mjs';
import { fitPower } from './render-plot.mjs';

/** The share of one core that is planned for; the rest is for backups, vacuum and bad hours. */
const plannedShare = 0.5;
/** What takes less of the database than this is bounded by something else long before. */
const boundingMs = 1;
const prefix = 'system database, ';

/** Null without figures: there is nothing true to say then. */
export function renderScaling(ledgers) {
  const ledger = ledgers.find(({ name, busy }) => name === 'scale' && !busy);
  if (ledger === undefined) return null;
  const things = readThings(ledger.measures);
  const { date, commit, machine, loadBefore } = ledger;
  return `# Scaling

Written by \`npm run generate\` from \`docs/performance/scale.json\`, which \`npm run bench -- scale --write\` leaves; do not
edit. Measured on ${date} at \`${commit}\`, ${machine}, load ${loadBefore}, with Catnap and its system database on the
same machine. All figures with many computes are of rows alone: copies of one real project in the system database,
asleep, with nothing on the disk. They show what the control plane does with them, and nothing about disks.

## What each thing asks of the system database

From the database's own counters, before and after several of each, less what ticks anyway. Time is that in which a
session was at work on a statement, waiting for the disk included; 0 is less than the ticking itself varies by.

${renderThings(things)}

## What one system database carries

If half of one core of the database is planned for, with nothing else going on. What takes less than a millisecond of it is
left out: processors of APIs and proxies are full long before.

${renderCapacity(things)}

These bounds are of the system database alone. On one machine, servers that start take a core for much longer than
the rows that tell of them, so the machine is full first. They matter where the computes are elsewhere.

Sessions are the other bound. At its fullest a proxy has 11 of them, an API 21, a worker 19; the database that Catnap
brings permits 200. Two APIs, two workers and nine proxies fit even then, and more in practice, since pools close what
they do not use. Beyond that, raise \`max_connections\` of an external database. A pooler in transaction mode does not
do: processes \`LISTEN\`, and prepare their statements.

## With ever more computes

${renderGrowth(ledger.measures)}

Lists and lookups go through indexes whatever the size, and the worker in its turns asks for what is awake or due alone.
One thing reads every name: a search of projects by a part of their names. An index of trigrams would end that. It needs
the extension \`pg_trgm\`, which not every external database has, and no list that people search by name is that long yet.

## What comes next

- **Computes that are awake** cost the control plane most: each is sampled for autoscaling and for its idle time, and
  each of its sessions is known to a proxy. Their number is bounded by machines long before the database notices.
- **Writes that wait for the disk** come next: every operation is a few transactions, and each waits for one flush of
  the log. Flushes are shared by transactions at the same time, so the rate grows with load; a disk with a fast flush
  for the system database is the first thing to buy.
- **One primary** takes all writes. When that is full, the way on is one system database for a group of
  organizations, each with its own APIs, workers and proxies. Catnap has no router for that today; a name for each
  group in DNS does it, and a project moves between groups as between installations.
- **The table of operations** grows with history. Finished ones are removed after their time; partitions by day would make
  that removal free.
`;
}

/** By what is done: time, transactions, rows and log. */
function readThings(measures) {
  const things = new Map();
  for (const { what, ours } of measures.filter((measure) => measure.what.startsWith(prefix))) {
    // Names of things have colons of their own.
    const words = what.slice(prefix.length).split(': ');
    const figure = words.pop();
    const thing = words.join(': ');
    things.set(thing, { ...things.get(thing), [figure]: ours.median });
  }
  return things;
}

function renderThings(things) {
  const rows = [...things].map(([thing, figures]) => [
    thing,
    `${number(figures.busy)} ms`,
    number(figures.transactions),
    number(figures['rows read']),
    bytes(figures['log written']),
  ]);
  return table(['what', 'time', 'transactions', 'rows read', 'log'], rows);
}

function renderCapacity(things) {
  const rest = things.get('at rest, each second')?.busy ?? 0;
  const leftMs = 1_000 * plannedShare - rest;
  const rows = [...things]
    .filter(([thing, { busy }]) => thing !== 'at rest, each second' && busy >= boundingMs)
    .map(([thing, figures]) => {
      const rate = leftMs / figures.busy;
      return [thing, `${whole(rate)} a second`, `${bytes(rate * figures['log written'])} a second`];
    });
  return table(['only this', 'as many as', 'log'], rows);
}

function renderGrowth(measures) {
  const lines = new Map();
  for (const { what, at, unit, ours } of measures.filter((measure) => measure.at !== undefined)) {
    lines.set(`${what}, ${unit}`, [...(lines.get(`${what}, ${unit}`) ?? []), [at, ours.median]]);
  }
  const counts = [...new Set([...lines.values()].flatMap((points) => points.map(([at]) => at)))];
  const rows = [...lines].map(([what, points]) => [
    what,
    ...counts.map((count) => number(points.find(([at]) => at === count)?.[1] ?? Number.NaN)),
    fitPower(points).toFixed(2),
  ]);
  return table(['what', ...counts.map((count) => `${whole(count)} computes`), 'exponent'], rows);
}

function bytes(value) {
  if (value >= 1e6) return `${number(value / 1e6)} MB`;
  return value >= 1e3 ? `${number(value / 1e3)} kB` : `${whole(value)} bytes`;
}

const number = (value) => (Number.isNaN(value) ? '' : value.toLocaleString('en-US', { maximumSignificantDigits: 3 }));
const whole = (value) => Math.floor(value).toLocaleString('en-US');
