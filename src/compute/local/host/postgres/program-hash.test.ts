import { createHash } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { hashOfProgram } from './program-hash.ts';

let folder: string;
let program: string;
let note: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cn-hash-'));
  [program, note] = [join(folder, 'program'), join(folder, 'note')];
  await writeFile(program, 'first');
});
afterEach(() => rm(folder, { recursive: true }));

const hashOf = (text: string) => createHash('sha256').update(text).digest('hex');
/** As after a restart: only the note is left. */
const ask = () => hashOfProgram(program, note, new Map());

test('a program that is the same file is not read again', async () => {
  expect(await ask()).toBe(hashOf('first'));
  const noted = await readFile(note, 'utf8');
  const other = 'a'.repeat(64);
  await writeFile(note, noted.replace(hashOf('first'), other));
  expect(await ask()).toBe(other);
});

test('a program that was written to or exchanged is read, also in one process', async () => {
  const memory = new Map();
  expect(await hashOfProgram(program, note, memory)).toBe(hashOf('first'));
  await writeFile(program, 'later on');
  expect(await hashOfProgram(program, note, memory)).toBe(hashOf('later on'));
  expect(await ask()).toBe(hashOf('later on'));
  await rm(program);
  await writeFile(program, 'other');
  expect(await ask()).toBe(hashOf('other'));
});

test('a note that is cut off or belongs to another file is not believed, and put right', async () => {
  await ask();
  const noted = await readFile(note, 'utf8');
  for (const wrong of [noted.slice(0, -1), `1 2 3 4\n${'a'.repeat(64)}`, '']) {
    await writeFile(note, wrong);
    expect(await ask()).toBe(hashOf('first'));
    expect(await readFile(note, 'utf8')).toBe(noted);
  }
});

test('nothing needs a note', async () => {
  expect(await hashOfProgram(program, null, new Map())).toBe(hashOf('first'));
  expect(await hashOfProgram(program, join(folder, 'nowhere', 'note'), new Map())).toBe(hashOf('first'));
});
