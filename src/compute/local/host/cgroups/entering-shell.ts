/** How a process enters its control groups before it becomes a server. */

/**
 * The command line of a shell that enters the groups behind its first open files, closes those and more, and then
 * becomes the program. The server's own uid enters, through files that the parent opened, so no other program is needed
 * to drop privileges.
 */
export function enteringShell(groupCount: number, closedCount: number, words: readonly string[]): string[] {
  const fds = (count: number) => Array.from({ length: count }, (_, index) => 3 + index);
  const enter = fds(groupCount).map((fd) => `echo 0 >&${fd} || exit 1; `);
  const close = fds(closedCount).map((fd) => ` ${fd}>&-`);
  return ['/bin/sh', '-c', `${enter.join('')}exec "$@"${close.join('')}`, 'sh', ...words];
}
