import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CatnapError } from '../../lib/errors.ts';
import type { ErrorReport } from '../protocol/messages.ts';
import { cstring, encodeMessage } from '../protocol/wire.ts';
import { asksForReplication, isAllowed, ReplicationGuard } from './replication.ts';

const asks = (replication: string) => asksForReplication(new Map([['replication', replication]]));
const query = (text: string) => encodeMessage('Q', cstring(text));

describe('the startup parameter', () => {
  it('is for logical replication, or for none', () => {
    expect(asks('database')).toBe(true);
    expect(asksForReplication(new Map())).toBe(false);
    for (const value of ['false', 'off', 'NO', '0', 'f']) expect(asks(value)).toBe(false);
  });

  it.each(['true', 'on', 'yes', '1', 'Database', '', 'o'])('refuses "%s"', (value) => {
    expect(() => asks(value)).toThrow(CatnapError);
    expect(() => asks(value)).toThrow(/physical replication is not offered/);
  });
});

describe('commands', () => {
  it.each([
    'IDENTIFY_SYSTEM',
    'SHOW wal_segment_size',
    'CREATE_REPLICATION_SLOT s LOGICAL pgoutput',
    'CREATE_REPLICATION_SLOT "s" TEMPORARY LOGICAL "pgoutput" (SNAPSHOT \'nothing\')',
    `START_REPLICATION SLOT "s" LOGICAL 0/0 (proto_version '4', publication_names '"p"')`,
    'START_REPLICATION SLOT s\tLOGICAL\n0/0',
    'DROP_REPLICATION_SLOT s WAIT',
    'ALTER_REPLICATION_SLOT s (FAILOVER false)',
    'select 1',
    "select 'BASE_BACKUP'",
    '',
  ])('allows %s', (text) => {
    expect(isAllowed(text)).toBe(true);
  });

  it.each([
    'BASE_BACKUP',
    ' \n\tBASE_BACKUP (MANIFEST yes);',
    "BASE_BACKUP(LABEL 'x')",
    'base_backup',
    'UPLOAD_MANIFEST',
    'TIMELINE_HISTORY 1',
    'READ_REPLICATION_SLOT s',
    'START_REPLICATION 0/0',
    'START_REPLICATION PHYSICAL 0/0',
    'START_REPLICATION SLOT s 0/0',
    'START_REPLICATION SLOT s PHYSICAL 0/0 TIMELINE 1',
    'START_REPLICATION SLOT "LOGICAL " PHYSICAL 0/0',
    'START_REPLICATION SLOT LOGICAL PHYSICAL 0/0',
    'CREATE_REPLICATION_SLOT s PHYSICAL',
    'CREATE_REPLICATION_SLOT s TEMPORARY PHYSICAL RESERVE_WAL',
    'CREATE_REPLICATION_SLOT LOGICAL PHYSICAL',
    'CREATE_REPLICATION_SLOT "s LOGICAL " PHYSICAL',
  ])('refuses %s', (text) => {
    expect(isAllowed(text)).toBe(false);
  });
});

describe('the guard', () => {
  const run = (bytes: Buffer, cuts: readonly number[]) => {
    const refusals: ErrorReport[] = [];
    const guard = new ReplicationGuard((report) => refusals.push(report));
    const ends = [...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].sort((a, b) => a - b);
    const passed = ends.map((end, index) => guard.admit(bytes.subarray(ends[index - 1] ?? 0, end)));
    return { passed: Buffer.concat(passed), refusals };
  };
  const cuts = fc.array(fc.nat(), { maxLength: 20 });
  const status = encodeMessage('d', Buffer.from(`r${'BASE_BACKUP\0Q\0\0\0\0'.repeat(20)}`));
  const before = Buffer.concat([
    query('IDENTIFY_SYSTEM'),
    query('START_REPLICATION SLOT s LOGICAL 0/0'),
    status,
    encodeMessage('c'),
    query('select 1'),
  ]);

  it('passes on what is allowed, byte for byte, however it is cut', () => {
    fc.assert(
      fc.property(cuts, (at) => {
        expect(run(before, at)).toEqual({ passed: before, refusals: [] });
      }),
    );
  });

  it('lets nothing of a refused command or after it through', () => {
    const bytes = Buffer.concat([before, query('BASE_BACKUP'), query('select 2'), query('BASE_BACKUP')]);
    fc.assert(
      fc.property(cuts, (at) => {
        const { passed, refusals } = run(bytes, at);
        expect(passed).toEqual(before);
        expect(refusals).toEqual([{ sqlState: '0A000', message: expect.stringContaining('physical replication') }]);
      }),
    );
  });

  it('ends at a message that has no length, and at a command that has too much of it', () => {
    expect(run(Buffer.from([0x64, 0, 0, 0, 3]), [])).toMatchObject({ refusals: [{ sqlState: '08P01' }] });
    const endless = Buffer.from([0x51, 0x7f, 0, 0, 0]);
    expect(run(endless, [])).toMatchObject({ refusals: [{ sqlState: '54000' }], passed: Buffer.alloc(0) });
  });
});
