/** Medians with their spread, and a table that compares us with a peer. */

export function summarize(samples) {
  const sorted = [...samples].sort((a, b) => a - b);
  const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
  return { median: at(0.5), min: sorted[0], max: sorted.at(-1), p95: at(0.95), n: sorted.length };
}

/** `rows` is a list of [what, samples in ms]; ratios are to the row named `peer`, or without one shares of the sum. */
export function printTable(title, rows, peer) {
  const medianOf = ([, samples]) => summarize(samples).median;
  const base = peer ? medianOf(rows.find(([what]) => what === peer)) : rows.map(medianOf).reduce((a, b) => a + b);
  console.log(`\n${title}`);
  console.log(
    `  ${'what'.padEnd(44)}${'median'.padStart(9)}${'min'.padStart(9)}${'max'.padStart(9)}${'n'.padStart(5)}   ${peer ? 'ratio' : 'share'}`,
  );
  for (const [what, samples] of rows) {
    const { median, min, max, n } = summarize(samples);
    const cells = [median, min, max].map((ms) => `${ms.toFixed(1)}`.padStart(9)).join('');
    console.log(`  ${what.padEnd(44)}${cells}${String(n).padStart(5)}   ${(median / base).toFixed(2)}`);
  }
}

export async function timed(work) {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}
