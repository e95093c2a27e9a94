import type { ListedPackage } from './render-licenses.mjs';

export type Lock = Readonly<Record<string, object>>;
export function readLock(folder?: string): Lock;
export function installedFolders(lock: Lock): string[];
export function describePackages(folders: readonly string[], lock: Lock): (ListedPackage & { folder: string })[];
