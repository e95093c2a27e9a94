/** The files of timelines in a folder of log, which may be a tenant's. */
import { constants } from 'node:fs';
import { open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type EndedTimeline, endedTimelines, isTimelineFile, timelineFile } from '../../../../lib/timelines.ts';

const fileBytesMax = 65_536;

/** The timelines before this one, oldest first; none where the folder does not have the file. */
export async function readEndedTimelines(
  folder: string,
  timeline: number,
  owner: number | null = null,
): Promise<EndedTimeline[]> {
  return endedTimelines((await readTimelineFile(folder, timelineFile(timeline), owner)) ?? '');
}

/** Null where there is none. A folder of a tenant's may hold anything: only a plain file of its `owner` is read. */
export async function readTimelineFile(folder: string, name: string, owner: number | null): Promise<string | null> {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const handle = await open(join(folder, name), flags).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw error;
  });
  if (handle === null) return null;
  try {
    const facts = await handle.stat();
    const isOwn = facts.nlink === 1 && facts.uid === (owner ?? facts.uid);
    if (!facts.isFile() || !isOwn || facts.size > fileBytesMax)
      throw new Error(`not a timeline's file of uid ${owner ?? 'its owner'}: ${join(folder, name)}`);
    return await handle.readFile('utf8');
  } finally {
    await handle.close();
  }
}

export async function timelineFilesIn(folder: string): Promise<string[]> {
  return (await readdir(folder)).filter(isTimelineFile);
}
