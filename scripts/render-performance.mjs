/**
 * docs/performance.md and its pictures, made from what `npm run bench -- NAME --write` left in docs/performance, and
 * from the reasons there for targets that are missed. Pure.
 */
import { table } from './render-docs.mjs';
import { fitPower, renderPlot } from './render-plot.mjs';

/** In the order of the chapters. A benchmark that has left no figures yet has no chapter. */
const chapters = {
  proxy: ['Sessions and the pool', '`pgbench -S` through Catnap, beside PgBouncer in front of an equal server.'],
  serverless: [
    'SQL over HTTP and WebSocket',
    'One-row selects, beside a pool of `pg` in a route of a bare Fastify on the same server.',
  ],
  wake: ['Wakes and connections', 'A client that connects, until its first row.'],
  suspend: ['Sleep', 'From the request until the compute is idle.'],
  crowd: ['Many computes', 'Wakes at once, and wakes on a machine that has other computes.'],
  create: ['New projects', 'From the request until the first row.'],
  branch: ['New branches', 'From the request until the first row, on XFS, for parents of several sizes.'],
  testing: ['Branches for tests', 'From `freshBranch` until the first row: [testing.md](testing.md).'],
  api: ['The API', 'Requests, beside a bare Fastify that runs the same statements.'],
  console: [
    'The console',
    'Chromium over the data of `npm run demo`: 188 branches in one project, 10,000 rows of 51 columns in another.',
  ],
  idle: ['Rest', 'What an installation costs in which everything sleeps, and how fast it is there.'],
  history: [
    'History',
    'A dropped table, from the request to restore the branch until it answers; and what it costs to keep a history.',
  ],
  drill: ['The drill', 'A home is deleted under load, and restored from the store on an empty one.'],
  kubernetes: [
    'Kubernetes',
    'Computes on a cluster, beside the bare operator of CloudNativePG: [what is real there](kubernetes.md#what-ran-where).',
  ],
  recovery: ['Recovery', 'After `kill -9`, until the API, a direct and a pooled client have an answer again.'],
  scale: [
    'Size of the installation',
    'The same with ever more computes in the system database. Those are rows alone: [scaling.md](scaling.md).',
  ],
};

const intro = `# Performance

Written by \`npm run generate\` from the files in \`docs/performance\`, which benchmarks leave with \`--write\`; do not
edit. \`npm run bench -- NAME --gate\` measures again and says what moved. Every comparison was made within one run, in
turns; a ratio is the median of the ratios of the turns, with the least and the most in brackets. Of rates a higher
ratio is better, of times a lower one. A machine at work is one with a process on each core that does nothing but count.`;

/** Returns the page, and its pictures by file name. */
export function renderPerformance({ ledgers, reasons }) {
  const unknown = ledgers.find(({ name }) => !(name in chapters));
  if (unknown !== undefined) throw new Error(`docs/performance/${unknown.name}.json belongs to no chapter`);
  const names = Object.keys(chapters).filter((name) => ledgers.some((ledger) => ledger.name === name));
  const pictures = new Map();
  const bodies = names.map((name) => renderChapter(name, ledgers, pictures));
  return { page: `${[intro, renderTargets(ledgers, reasons), ...bodies].join('\n\n')}\n`, pictures };
}

/** Every target, with the figures of a quiet machine and of one at work side by side. */
function renderTargets(ledgers, reasons) {
  const rows = [];
  for (const { name, measures } of ledgers.filter(({ busy }) => !busy)) {
    for (const measure of measures.filter(hasTarget)) {
      const atWork = find(ledgers, name, true, measure);
      const reason = isMet(measure) ? '' : (reasons[`${name}: ${measure.what}`] ?? reasons[name] ?? '');
      rows.push([titleOf(measure), figureOf(measure), atWork ? figureOf(atWork) : '', targetOf(measure), reason]);
    }
  }
  if (rows.length === 0) return 'No figures have been kept yet.';
  const missed = ledgers.filter(({ busy }) => !busy).flatMap(({ measures }) => measures.filter(isMissed)).length;
  return `## Targets

${rows.length - missed} of ${rows.length} are met on a quiet machine.

${table(['what', 'quiet', 'at work', 'target', 'why it is missed'], rows)}`;
}

function renderChapter(name, ledgers, pictures) {
  const [title, what] = chapters[name];
  const parts = [`## ${title}`, what];
  for (const ledger of ledgers.filter((one) => one.name === name)) {
    const { busy, date, commit, machine, loadBefore, measures } = ledger;
    const command = `npm run bench -- ${name}${busy ? ' --busy' : ''}`;
    parts.push(
      `${busy ? 'At work' : 'Quiet'}: \`${command}\`, ${date}, at \`${commit}\`, ${machine}, load ${loadBefore}.`,
    );
    parts.push(renderMeasures(measures));
    if (!busy) parts.push(...renderSeries(name, measures, pictures));
  }
  return parts.join('\n\n');
}

function renderMeasures(measures) {
  const rows = measures.map((measure) => [
    titleOf(measure),
    withUnit(measure.ours, measure.unit),
    measure.peer ? `${measure.beside}: ${withUnit(measure.peer, measure.unit)}` : '',
    measure.ratio ? spreadOf(measure.ratio) : '',
    String(measure.ours.n),
    hasTarget(measure) ? `${targetOf(measure)} ${isMet(measure) ? 'met' : '**missed**'}` : '',
  ]);
  return table(['what', 'Catnap', 'beside', 'ratio', 'n', 'target'], rows);
}

/** Measures with the same words at three and more points are a line of a picture, and have an exponent. */
function renderSeries(name, measures, pictures) {
  const series = new Map();
  for (const measure of measures.filter(({ at }) => at !== undefined)) {
    const key = `${measure.of}|${measure.unit}`;
    const lines = series.get(key) ?? new Map();
    series.set(key, lines);
    lines.set(measure.what, [...(lines.get(measure.what) ?? []), [measure.at, measure.ours.median]]);
  }
  return [...series].flatMap(([key, all], place) => {
    const lines = [...all].filter(([, points]) => points.length >= 3);
    if (lines.length === 0) return [];
    const [of, unit] = key.split('|');
    const file = `performance-${name}${place === 0 ? '' : `-${place + 1}`}.svg`;
    const fits = lines.map(([what, points]) => [what, fitPower(points)]);
    pictures.set(file, renderPlot({ lines, of, unit }));
    const rows = fits.map(([what, exponent]) => [what, exponent.toFixed(2)]);
    return [`![${chapters[name][0]}, ${unit} by ${of}](images/${file})`, table([`grows with ${of}`, 'exponent'], rows)];
  });
}

function find(ledgers, name, busy, { what, at }) {
  const ledger = ledgers.find((one) => one.name === name && one.busy === busy);
  return ledger?.measures.find((measure) => measure.what === what && measure.at === at);
}

const hasTarget = ({ atLeast, atMost }) => atLeast !== undefined || atMost !== undefined;
const judged = ({ ratio, ours }) => (ratio ?? ours).median;
const isMet = (measure) =>
  measure.atLeast === undefined ? judged(measure) <= measure.atMost : judged(measure) >= measure.atLeast;
const isMissed = (measure) => hasTarget(measure) && !isMet(measure);
const titleOf = ({ what, at, of }) => (at === undefined ? what : `${what}, ${number(at)} ${of}`);
const figureOf = (measure) => (measure.ratio ? spreadOf(measure.ratio) : withUnit(measure.ours, measure.unit));

function targetOf({ atLeast, atMost, ratio, unit }) {
  const bound = atLeast === undefined ? `≤ ${number(atMost)}` : `≥ ${number(atLeast)}`;
  return ratio || unit === '×' ? bound : `${bound} ${unit}`;
}

function withUnit(spread, unit) {
  return unit === '×' ? spreadOf(spread) : `${spreadOf(spread)} ${unit}`;
}

function spreadOf({ median, min, max, n }) {
  return n === 1 ? number(median) : `${number(median)} (${number(min)}–${number(max)})`;
}

function number(value) {
  return value.toLocaleString('en-US', { maximumFractionDigits: 3 });
}
