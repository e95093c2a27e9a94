/** Histories on the disk, as the driver leaves them for an upload; the log is bytes without a meaning. */
import { createHash } from 'node:crypto';
import { appendFile, copyFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { BaseImage } from '../../src/backup/documents.ts';
import { segmentAt, segmentBytes } from '../../src/lib/log-segments.ts';
import { lsnBytes, lsnText } from '../../src/lib/moments.ts';
import { timelineFile } from '../../src/lib/timelines.ts';

export interface HistoryTree {
  readonly root: string;
  /** Appends that many bytes of log, at that time. */
  write(bytes: number, at?: Date): Promise<void>;
  /** A base image of the present end. */
  makeBase(at?: Date): Promise<BaseImage>;
  /** The log goes on under another number, in a segment that begins with what the last one held. */
  changeTimeline(): Promise<void>;
  /** What the driver does once the window has moved on. */
  dropBase(base: BaseImage): Promise<void>;
  dropLog(file: string): Promise<void>;
  /** Where the log ends. */
  end(): string;
  remove(): Promise<void>;
}

export const treeRef = { projectId: 'quiet-cat-1', historyId: '00aa11bb22cc33dd' };

export async function makeHistoryTree(branchId = 'br-quiet-cat-1'): Promise<HistoryTree> {
  const root = await mkdtemp(join(tmpdir(), 'cn-history-'));
  const directory = join(root, treeRef.projectId, treeRef.historyId);
  let [end, count, timeline] = [lsnBytes('0/1000000'), 0, 1];
  const segment = () => join(directory, 'log', segmentAt(timeline, lsnText(end)));
  const ended: string[] = [];
  const writeState = async (at: Date) => {
    const copied = { at: at.toISOString(), lsn: lsnText(end) };
    const state = { branchId, pgVersion: 17, timeline, copied, gaps: [], lostSince: null };
    await writeFile(join(directory, 'history.json'), JSON.stringify(state));
    await appendFile(join(directory, 'marks'), `${copied.at} ${copied.lsn}\n`);
  };
  await mkdir(join(directory, 'log'), { recursive: true });
  await mkdir(join(directory, 'bases'));
  await writeState(new Date());
  return {
    root,
    async write(bytes, at = new Date()) {
      for (let left = bytes; left > 0; ) {
        const here = Math.min(left, Number(segmentBytes - (end % segmentBytes)));
        await appendFile(segment(), noise(`${end}`, here));
        end += BigInt(here);
        left -= here;
      }
      await writeState(at);
    },
    async makeBase(at = new Date()) {
      count += 1;
      const name = `${at.toISOString().replaceAll(/\D/g, '')}-${count}`;
      const folder = join(directory, 'bases', name);
      await mkdir(join(folder, 'pgdata', 'base'), { recursive: true });
      await writeFile(join(folder, 'pgdata', 'PG_VERSION'), '17\n');
      await writeFile(join(folder, 'pgdata', 'base', 'table'), noise(name, 50_000));
      const start = lsnText((end / segmentBytes) * segmentBytes);
      const position = { timeline, start, lsn: lsnText(end), at: at.toISOString() };
      const facts = { name, ...position, bytes: 50_003, isLive: false };
      await writeFile(join(folder, 'base.json'), JSON.stringify({ ...facts, bytesShared: 0 }));
      return { ...facts, firstSecret: null };
    },
    async changeTimeline() {
      const last = segment();
      ended.push(`${timeline}\t${lsnText(end)}\tno recovery target specified\n`);
      timeline += 1;
      await writeFile(join(directory, 'log', timelineFile(timeline)), ended.join('\n'));
      if (end % segmentBytes > 0n) await copyFile(last, segment());
      await writeState(new Date());
    },
    dropBase: ({ name }) => rm(join(directory, 'bases', name), { recursive: true }),
    dropLog: (file) => rm(join(directory, 'log', file)),
    end: () => lsnText(end),
    remove: () => rm(root, { recursive: true, force: true }),
  };
}

/** Different at each place, and does not compress away. */
function noise(seed: string, bytes: number): Buffer {
  const block = Buffer.concat(
    Array.from({ length: 128 }, (_, at) => createHash('sha512').update(`${seed} ${at}`).digest()),
  );
  return Buffer.alloc(bytes, block);
}
