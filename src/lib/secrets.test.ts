import { randomBytes } from 'node:crypto';
import { expect, it } from 'vitest';
import { createSecretBox, hashToken, isFindable } from './secrets.ts';

const box = createSecretBox(randomBytes(32));

it('opens what it sealed, in the same context only', () => {
  const sealed = box.seal('hunter2', 'role:a');
  expect(box.open(sealed, 'role:a')).toBe('hunter2');
  expect(() => box.open(sealed, 'role:b')).toThrow();
});

it('never seals to the same bytes twice, and shows nothing of the text', () => {
  const [one, two] = [box.seal('hunter2', 'x'), box.seal('hunter2', 'x')];
  expect(one.equals(two)).toBe(false);
  expect(one.includes('hunter2')).toBe(false);
});

it('marks what is to be found, alike for the same text and for nobody without the key', () => {
  const [one, two] = [box.sealFindable('hunter2', 'a'), box.sealFindable('hunter2', 'b')];
  expect([box.open(one, 'a'), box.open(two, 'b')]).toEqual(['hunter2', 'hunter2']);
  expect(() => box.open(one, 'b')).toThrow();
  expect([isFindable(one), isFindable(box.seal('hunter2', 'a'))]).toEqual([true, false]);
  const markIn = (sealed: Buffer) => sealed.subarray(1, 17);
  expect([markIn(one), markIn(two)]).toEqual([box.markOf('hunter2'), box.markOf('hunter2')]);
  expect(box.markOf('hunter3').equals(box.markOf('hunter2'))).toBe(false);
  expect(createSecretBox(randomBytes(32)).markOf('hunter2').equals(box.markOf('hunter2'))).toBe(false);
});

it('refuses a changed byte, another key, another format and a key of the wrong length', () => {
  const sealed = box.seal('hunter2', 'x');
  const changed = Buffer.from(sealed);
  changed[changed.length - 1] = (changed.at(-1) ?? 0) ^ 1;
  expect(() => box.open(changed, 'x')).toThrow();
  expect(() => createSecretBox(randomBytes(32)).open(sealed, 'x')).toThrow();
  expect(() => box.open(Buffer.from([9, ...sealed.subarray(1)]), 'x')).toThrow(/unknown format/);
  expect(() => createSecretBox(randomBytes(16))).toThrow(/32 bytes/);
});

it('hashes tokens to 32 bytes', () => {
  expect(hashToken('a')).toHaveLength(32);
  expect(hashToken('a').equals(hashToken('b'))).toBe(false);
});
