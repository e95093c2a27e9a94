import { describe, expect, it } from 'vitest';
import { notesOnMachine } from './notes.ts';

const fine = { limitsProblem: null, networkProblem: null, storageMethod: 'reflink' } as const;
const poor = { limitsProblem: 'EACCES', networkProblem: 'Catnap does not run as root', storageMethod: 'copy' } as const;

describe('the notes of the banner', () => {
  it('are none where everything works', () => {
    expect(notesOnMachine({ facts: fine, isRoot: true, isFirstStart: true, command: 'catnap' })).toEqual([]);
  });

  it('tell an ordinary user what an ordinary user can do', () => {
    const notes = notesOnMachine({ facts: poor, isRoot: false, isFirstStart: true, command: 'npx catnap' });
    expect(notes).toEqual([
      'sizes of computes are not enforced for an ordinary user (docs/operating.md#sizes)',
      'SQL in computes reaches everything that this machine reaches (docs/operating.md#what-computes-reach)',
      'branches will be full copies: set CATNAP_HOME to a folder on XFS or btrfs to have them share blocks',
    ]);
  });

  it('tell root why, and name the command as it is called here', () => {
    const notes = notesOnMachine({ facts: poor, isRoot: true, isFirstStart: true, command: 'npx catnap' });
    expect(notes[0]).toBe('sizes of computes are not enforced: EACCES (docs/operating.md#sizes)');
    expect(notes[2]).toContain('run `npx catnap storage create --size 50G`');
  });

  it('mention full copies at the first start alone', () => {
    expect(notesOnMachine({ facts: poor, isRoot: true, isFirstStart: false, command: 'catnap' })).toHaveLength(2);
  });
});
