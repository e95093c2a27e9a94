export function changesIn(changelog: string, version: string): string | undefined;
export function releasePending(changelog: string, version: string, date: string): string;
