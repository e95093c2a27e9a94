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

/** Returns the path of a file of the program, as npx installs it. */
function inCacheOfNpx(name: string, dependency: string): string {
  const cache = join(folder, name, '_npx', '1a2b');
  mkdirSync(cache, { recursive: true });
  writeFileSync(join(cache, 'package.json'), JSON.stringify({ dependencies: { catnap: dependency } }));
  return join(cache, 'node_modules/catnap/dist/bin.js');
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

  it('is npx with the file of the package where npx runs that, since a registry has another catnap or none', () => {
    const file = inCacheOfNpx('plain', 'file:../../../catnap-0.1.0.tgz');
    expect(commandName('/nowhere', file)).toBe(`npx --yes file:${folder}/catnap-0.1.0.tgz`);
    expect(commandName(folderWithCatnap('global', 0o755), file)).toBe('catnap');
    const odd = commandName('/nowhere', inCacheOfNpx('odd', 'file:/home/a b/$&.tgz'));
    expect(asCalledHere('`catnap open` signs you in', odd)).toBe(
      "`npx --yes file:'/home/a b/$&.tgz' open` signs you in",
    );
  });

  it('is npx catnap where npx took the package from a registry', () => {
    expect(commandName('/nowhere', inCacheOfNpx('registry', '^0.1.0'))).toBe('npx catnap');
    expect(commandName('/nowhere', join(folder, 'nothing/_npx/1/node_modules/catnap/dist/bin.js'))).toBe('npx catnap');
  });

  it('is what messages say', () => {
    const text = 'start it with `catnap up`; catnap itself, and `catnap-x`, are left alone';
    expect(asCalledHere(text, 'npx catnap')).toBe(
      'start it with `npx catnap up`; catnap itself, and `catnap-x`, are left alone',
    );
    expect(asCalledHere(text, 'catnap')).toBe(text);
  });
});
