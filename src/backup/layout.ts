/**
 * The names of objects in a store, below its prefix.
 *
 *   catnap.json                                            in the clear: which installation writes here
 *   manifest.json.gz.enc                                   projects and branches by name, and their histories
 *   system/home.tar.gz.enc                                 key files and certificates of the data home
 *   system/<history>/…                                     the system database, as below
 *   projects/<project>/<history>/history.json.gz.enc       which branch, which base images, how far the log reaches
 *   projects/<project>/<history>/bases/<base>/<part>       a part of a data directory, `00001-of-00004.tar.gz.enc`
 *   projects/<project>/<history>/log/<segment>.gz.enc      a segment of the log, or a timeline's `.history`
 */

export const claimKey = 'catnap.json';
export const manifestKey = 'manifest.json.gz.enc';
export const homeKey = 'system/home.tar.gz.enc';

/** Stands for a project in the tree on the disk, and is no project's id. */
export const systemProject = 'system';

export interface HistoryRef {
  readonly projectId: string;
  readonly historyId: string;
}

/** As the key of a map. */
export const nameOf = ({ projectId, historyId }: HistoryRef) => `${projectId}/${historyId}`;

export function refOf(name: string): HistoryRef {
  const [projectId = '', historyId = ''] = name.split('/');
  return { projectId, historyId };
}

/** Ends in a slash. */
export function historyPrefix({ projectId, historyId }: HistoryRef): string {
  return projectId === systemProject ? `system/${historyId}/` : `projects/${projectId}/${historyId}/`;
}

export const documentKey = (ref: HistoryRef) => `${historyPrefix(ref)}history.json.gz.enc`;
const fiveDigits = (count: number) => String(count).padStart(5, '0');
/** `part` counts from 1. The number of all parts is in the name, so that parts of another division are not taken. */
export const basePartKey = (ref: HistoryRef, base: string, part: number, parts: number) =>
  `${historyPrefix(ref)}bases/${base}/${fiveDigits(part)}-of-${fiveDigits(parts)}.tar.gz.enc`;
export const basePartKeys = (ref: HistoryRef, { name, parts }: { readonly name: string; readonly parts: number }) =>
  Array.from({ length: parts }, (_, index) => basePartKey(ref, name, index + 1, parts));
/** `file` is the name of a segment, or of a timeline's history file. */
export const logKey = (ref: HistoryRef, file: string) => `${historyPrefix(ref)}log/${file}.gz.enc`;

export type ObjectName =
  | { readonly kind: 'document'; readonly ref: HistoryRef }
  | { readonly kind: 'base'; readonly ref: HistoryRef; readonly base: string }
  | { readonly kind: 'log'; readonly ref: HistoryRef; readonly file: string };

const inHistory = /^(?:projects\/([^/]+)|system)\/([^/]+)\/(.+)$/;
const basePart = /^bases\/([^/]+)\/\d{5,}-of-\d{5,}\.tar\.gz\.enc$/;
const logFile = /^log\/([0-9A-F]{24}|[0-9A-F]{8}\.history)\.gz\.enc$/;

/** What an object of a history is; null for any other object. */
export function parseKey(key: string): ObjectName | null {
  const [, projectId = systemProject, historyId, rest] = inHistory.exec(key) ?? [];
  if (historyId === undefined || rest === undefined) return null;
  const ref = { projectId, historyId };
  if (rest === 'history.json.gz.enc') return { kind: 'document', ref };
  const base = basePart.exec(rest)?.[1];
  if (base !== undefined) return { kind: 'base', ref, base };
  const file = logFile.exec(rest)?.[1];
  return file === undefined ? null : { kind: 'log', ref, file };
}
