import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { makeCore, type TestCore } from '../../../test/helpers/core.ts';
import { eventually, stays } from '../../../test/helpers/eventually.ts';
import { readBackupStatus } from '../../core/backup.ts';
import { readScope } from '../../core/context.ts';
import { recordBackupState, recordVerification } from '../../db/backups.ts';
import { dayMs, daySeconds, hourMs } from '../../lib/clock.ts';
import { createLogger } from '../../lib/log.ts';
import { isVerifyDue, startVerifying } from './verify-schedule.ts';

const url = 'file:///mnt/backup';
const backup = { url, s3: undefined, bytesPerSecond: undefined, delaySeconds: 30, verifySeconds: daySeconds };
const log = createLogger({ level: 'silent', process: 'test' });
let domain: TestCore;
let running: { stop(): Promise<void> };
/** What verifications find; nothing is good. */
let finds: string;
let passedMs: number;

beforeAll(async () => {
  domain = await makeCore({ backup });
});
afterAll(() => domain.close());

beforeEach(async () => {
  const { sql } = domain.core.database;
  await sql`delete from backup_state`;
  await recordBackupState(sql, url, null);
  [finds, passedMs] = ['', 0];
  const verify = () => recordVerification(sql, url, finds === '', finds);
  const clock = { now: () => new Date(Date.now() + passedMs) };
  const core = { database: domain.core.database, clock };
  running = startVerifying(daySeconds, core, log, { lookEveryMs: 10, verify });
});

afterEach(() => running.stop());

const status = () => readBackupStatus(readScope(domain.core));

describe('on schedule', () => {
  test('the first is due at once, the next a day later, and the status has what was found', async () => {
    await eventually(async () => expect((await status()).uploader).toMatchObject({ verifiedOk: true }));
    expect((await status()).alerts).toEqual([]);
    finds = 'quiet-cat-1 br-1: a table is damaged';
    passedMs = 23 * hourMs;
    await stays(async () => expect((await status()).uploader).toMatchObject({ verifiedOk: true }), 200);
    passedMs = dayMs;
    await eventually(async () => expect((await status()).uploader).toMatchObject({ verifiedOk: false }));
    expect((await status()).alerts).toEqual([
      expect.stringMatching(/^The last verification, at .*, failed: .*a table is damaged$/),
    ]);
  });

  test('a schedule that is not kept is an alert', async () => {
    await eventually(async () => expect((await status()).uploader).toMatchObject({ verifiedOk: true }));
    await running.stop();
    await domain.core.database.sql`update backup_state set verified_at = now() - interval '3 days'`;
    expect((await status()).alerts).toEqual([
      expect.stringMatching(/^The backup was last verified at .*, too long ago/),
    ]);
  });
});

test('a clock that was set back makes it due', () => {
  const now = new Date();
  expect(isVerifyDue(new Date(now.getTime() - hourMs), daySeconds, now)).toBe(false);
  expect(isVerifyDue(new Date(now.getTime() + dayMs), daySeconds, now)).toBe(true);
});
