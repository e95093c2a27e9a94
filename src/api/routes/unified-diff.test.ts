import { expect, test } from 'vitest';
import { processorMs } from '../../../test/helpers/processor-time.ts';
import { unifiedDiff } from './unified-diff.ts';

const diff = (before: string, after: string) => unifiedDiff({ name: 'a', text: before }, { name: 'b', text: after });

test('shows what went and what came, with some lines around', () => {
  const lines = Array.from({ length: 20 }, (_, n) => `line ${n}`);
  const after = lines.with(10, 'changed').toSpliced(11, 0, 'added');
  expect(diff(lines.join('\n'), after.join('\n'))).toBe(
    [
      '--- a',
      '+++ b',
      '@@ -8,7 +8,8 @@',
      ' line 7',
      ' line 8',
      ' line 9',
      '-line 10',
      '+changed',
      '+added',
      ' line 11',
      ' line 12',
      ' line 13',
      '',
    ].join('\n'),
  );
  expect(diff('same\n', 'same\n')).toBe('');
});

/** What `patch` does, strictly: every line that is kept or removed must be there. */
function applied(before: readonly string[], patch: string): string[] {
  const result: string[] = [];
  let at = 0;
  for (const line of patch.split('\n').slice(2, -1)) {
    const hunk = /^@@ -(\d+)(?:,(\d+))? \+(\d+)/.exec(line);
    if (hunk) {
      const start = Number(hunk[1]) - (hunk[2] === '0' ? 0 : 1);
      result.push(...before.slice(at, start));
      at = start;
      expect(result.length).toBe(Number(hunk[3]) - (/\+\d+,0 @@/.test(line) ? 0 : 1));
      continue;
    }
    if (line[0] !== '+') expect(before[at++]).toBe(line.slice(1));
    if (line[0] !== '-') result.push(line.slice(1));
  }
  return [...result, ...before.slice(at)];
}

test('makes one text of the other, whatever they are', () => {
  const random = (seed: number) => Math.abs(Math.sin(seed) * 10_000) % 1;
  for (let round = 1; round <= 400; round++) {
    const before = Array.from({ length: 1 + (round % 60) }, (_, n) => `x${Math.floor(random(round * 97 + n) * 6)}`);
    const kept = before.filter((_, n) => random(round * 31 + n) > 0.2);
    const after = kept.flatMap((line, n) => (random(round * 7 + n) > 0.8 ? [line, `y${n}`] : [line]));
    if (after.length === 0 || after.join() === before.join()) continue;
    const patch = diff(`${before.join('\n')}\n`, `${after.join('\n')}\n`);
    expect(applied(before, patch)).toEqual(after);
    const changes = patch
      .split('\n')
      .slice(2)
      .filter((line) => /^[+-]/.test(line)).length;
    expect(changes).toBeLessThanOrEqual(before.length - kept.length + (after.length - kept.length));
  }
});

test('gives up soon on the shortest form of texts that have nothing in common', () => {
  const alike = 'x'.repeat(2_000);
  const text = (mark: string) => Array.from({ length: 4_000 }, (_, n) => `${alike}${mark}${n}`).join('\n');
  const [before, after] = [text('a'), text('b')];
  let lines: string[] = [];
  const ms = processorMs(() => {
    lines = diff(before, after).split('\n');
  });
  expect(ms).toBeLessThan(1_500);
  expect(lines).toHaveLength(3 + 8_000 + 1);
});
