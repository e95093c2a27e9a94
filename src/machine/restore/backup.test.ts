import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { makeTestStore } from '../../../test/helpers/stored-history.ts';
import { type HistoryDocument, writeHistoryDocument } from '../../backup/documents.ts';
import { parseBackupKey } from '../../backup/seal/backup-key.ts';
import { FileStore } from '../../backup/store/file-store.ts';
import { openBackup, takeInventory } from './backup.ts';

const position = (minute: number) => ({ at: `2026-11-16T12:0${minute}:00.000000Z`, lsn: `0/${minute}000000` });
const base = {
  ...position(1),
  name: 'base-1',
  timeline: 1,
  start: '0/1000000',
  bytes: 1,
  isLive: false,
  firstSecret: null,
  parts: 1,
} satisfies HistoryDocument['bases'][number];

test('a history without a base image does not stand before an older one that has some', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'catnap-inventory-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const { keyLine, settings } = await makeTestStore(folder);
  const write = (historyId: string, minute: number, bases: HistoryDocument['bases']) =>
    writeHistoryDocument(
      { store: new FileStore(folder), key: parseBackupKey(keyLine) },
      {
        projectId: 'calm-sun-12345678',
        historyId,
        branchId: 'br-calm-sun-12345678',
        pgVersion: 17,
        timeline: 1,
        bases,
        until: position(minute),
        gaps: [],
        marks: [],
        writtenAt: position(minute).at,
      },
    );
  await write('before', 2, [base]);
  await write('after-a-restore', 3, []);
  const backup = await openBackup({ ...settings, delaySeconds: 30 }, keyLine);
  const { tenants, unusable } = await takeInventory(backup);
  expect(tenants.map(({ historyId }) => historyId)).toEqual(['before']);
  expect(unusable).toEqual([
    { projectId: 'calm-sun-12345678', historyId: 'after-a-restore', reason: 'its first upload was not finished' },
  ]);
});
