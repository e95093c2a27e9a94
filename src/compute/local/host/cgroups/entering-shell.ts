/** How a process enters its control groups before it becomes a server. */

/**
 * Arguments that make a shell enter the groups behind its open files and then become the program. The server's own uid
 * enters, through files that the parent opened, so no other program is needed to drop privileges.
 */
export function enteringShell(count: number, words: readonly string[]): { program: string; words: string[] } {
  const fds = Array.from({ length: count }, (_, index) => 3 + index);
  const enter = fds.map((fd) => `echo 0 >&${fd} || exit 1`).join('; ');
  const close = fds.map((fd) => `${fd}>&-`).join(' ');
  return { program: '/bin/sh', words: ['-c', `${enter}; exec "$@" ${close}`, 'sh', ...words] };
}
