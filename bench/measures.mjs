/**
 * What one run of a benchmark has found: kept here as it is printed, written to docs/performance with `--write`, and
 * compared with what is there with `--gate`.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { arch, availableParallelism, loadavg, totalmem } from 'node:os';
import { fileURLToPath } from 'node:url';
import { summarize } from './stats.mjs';

const folder = fileURLToPath(new URL('../docs/performance/', import.meta.url));
/** Machines differ from hour to hour; less than this is no news, whatever the spread says. */
const noticeable = 0.1;
let kept = [];

/**
 * One line of the ledger. `ours` and `peer` are samples of the same turns, and the ratio is the median of the ratios
 * of the turns. The target is of the ratio where there is a peer, else of the median. `at` and `of` make lines with the
 * same words a series: how many of what.
 */
export function keep({ what, unit, ours, peer, beside, atLeast, atMost, at, of }) {
  const ratios = peer?.length > 0 ? ours.map((value, turn) => value / peer[turn % peer.length]) : null;
  kept.push({
    what,
    ...(at === undefined ? {} : { at, of }),
    unit,
    ours: spread(ours),
    ...(ratios === null ? {} : { beside, peer: spread(peer), ratio: spread(ratios) }),
    ...(atLeast === undefined ? {} : { atLeast }),
    ...(atMost === undefined ? {} : { atMost }),
  });
}

/** What was kept since the last call. */
export function takeKept() {
  const taken = kept;
  kept = [];
  return taken;
}

export function writeLedger(name, measures, { isBusy, loadBefore }) {
  const ledger = {
    name,
    busy: isBusy,
    date: new Date().toISOString().slice(0, 10),
    commit: run('git', ['rev-parse', '--short', 'HEAD']),
    machine: `${availableParallelism()} ${arch()} cores, ${Math.round(totalmem() / 2 ** 30)} GiB`,
    loadBefore: round(loadBefore),
    loadAfter: round(loadavg()[0]),
    measures,
  };
  const file = fileOf(name, isBusy);
  writeFileSync(file, `${JSON.stringify(ledger, null, 2)}\n`);
  console.log(`\nwritten to ${file}; "npm run generate" makes docs/performance.md of it`);
}

/** Prints what moved since the committed ledger; true where something got worse. */
export function compareWithLedger(name, measures, isBusy) {
  const file = fileOf(name, isBusy);
  if (!existsSync(file)) {
    console.log(`\n${name}: there is no ledger yet to compare with`);
    return false;
  }
  const { measures: before, commit } = JSON.parse(readFileSync(file, 'utf8'));
  const moves = measures.flatMap((measure) => {
    const old = before.find((one) => one.what === measure.what && one.at === measure.at);
    return old === undefined ? [] : describeMove(old, measure);
  });
  console.log(`\n${name}, since ${commit}: ${moves.length === 0 ? 'nothing moved' : ''}`);
  for (const { text } of moves) console.log(`  ${text}`);
  return moves.some(({ isWorse }) => isWorse);
}

/** Moved is what differs by a tenth and more, and whose new median is outside of the old spread. */
function describeMove(old, measure) {
  const [was, is] = [old.ratio ?? old.ours, measure.ratio ?? measure.ours];
  const change = is.median / was.median - 1;
  const isOutside = is.median < was.min || is.median > was.max;
  if (Math.abs(change) < noticeable || !isOutside) return [];
  const moreIsBetter = measure.unit.endsWith('/s');
  const isWorse = moreIsBetter === change < 0;
  const at = measure.at === undefined ? '' : `, ${measure.at} ${measure.of}`;
  const percent = `${change > 0 ? '+' : ''}${Math.round(change * 100)} %`;
  return [
    {
      isWorse,
      text: `${isWorse ? 'WORSE ' : 'better'} ${measure.what}${at}: ${was.median} → ${is.median} (${percent})`,
    },
  ];
}

function fileOf(name, isBusy) {
  return `${folder}${name}${isBusy ? '-busy' : ''}.json`;
}

function spread(samples) {
  const { median, min, max, n } = summarize(samples);
  return { median: round(median), min: round(min), max: round(max), n };
}

function round(value) {
  return Number(value.toPrecision(3));
}

function run(program, words) {
  return String(spawnSync(program, words).stdout).trim();
}
