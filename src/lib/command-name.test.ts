import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { asCalledHere, commandName } from './command-name.ts';

const folder = mkdtempSync(join(tmpdir(), 'cn-path-'));
afterAll(() => rmSync(folder, { recursive: true }));

function folderWithCatnap(name: string, mode: number): string {
  const path = join(folder, name);
  mkdirSync(path, { recursive: true });
  writeFileSync(join(path, 'catnap'), '');
  chmodSync(join(path, 'catnap'), mode);
  return path;
}

describe('how the program is called', () => {
  it('is catnap where that is a program on the path', () => {
    const installed = folderWithCatnap('bin', 0o755);
    expect(commandName(`/nowhere:${installed}`)).toBe('catnap');
  });

  it('is npx catnap where the path has no such program, or npm alone has put it there', () => {
    expect(commandName(`/nowhere:${folder}`)).toBe('npx catnap');
    expect(commandName(folderWithCatnap('node_modules/.bin', 0o755))).toBe('npx catnap');
    expect(commandName('')).toBe('npx catnap');
  });

  it('is what messages say', () => {
    const text = 'start it with `catnap up`; catnap itself, and `catnap-x`, are left alone';
    expect(asCalledHere(text, 'npx catnap')).toBe(
      'start it with `npx catnap up`; catnap itself, and `catnap-x`, are left alone',
    );
    expect(asCalledHere(text, 'catnap')).toBe(text);
  });
});
