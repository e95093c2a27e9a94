/**
 * Reads a server's log. Each entry begins with a time, a pid and the kind of process, which the server writes itself
 * (`log_line_prefix`); further lines of its text begin with a tab. A session can choose the text and nothing else, so
 * it cannot write an entry that seems to be the server's. Pure.
 */
import type { LogEntry } from '../../../lib/model.ts';

/** Processes that never run what tenants have written: no statement, function or trigger. */
const ownProcesses: ReadonlySet<string> = new Set([
  'postmaster',
  'startup',
  'checkpointer',
  'background writer',
  'walwriter',
  'archiver',
  'autovacuum launcher',
  'logical replication launcher',
  'walreceiver',
  'walsummarizer',
  'io worker',
  'slotsync worker',
]);

const levels = 'DEBUG[1-5]|LOG|INFO|NOTICE|WARNING|ERROR|FATAL|PANIC';
const details = 'DETAIL|HINT|QUERY|CONTEXT|LOCATION|STATEMENT|BACKTRACE';
const beginning = new RegExp(
  `^(\\d{4}-\\d\\d-\\d\\d) (\\d\\d:\\d\\d:\\d\\d\\.\\d{3}) UTC \\[(\\d+)\\] (.+?) (${levels}|${details}): {1,2}(.*)$`,
);
const isDetail = new RegExp(`^(${details})$`);

type Draft = { -readonly [Key in keyof LogEntry]: LogEntry[Key] };

/** The last `limit` entries, the newest at the end. */
export function parseLog(text: string, limit: number): LogEntry[] {
  const entries: Draft[] = [];
  for (const line of text.split('\n')) {
    if (line === '') continue;
    const [, day, clock, pid, process = '', level = '', message = ''] = beginning.exec(line) ?? [];
    const last = entries.at(-1);
    if (line.startsWith('\t')) {
      if (last !== undefined) last.message += `\n${line.slice(1)}`;
    } else if (day === undefined) {
      // What a library or the kernel wrote, past the server's own log.
      entries.push({ at: null, pid: null, source: 'unknown', process: null, level: null, message: line });
    } else if (isDetail.test(level)) {
      if (last?.pid === Number(pid)) last.message += `\n${level}: ${message}`;
    } else {
      const at = `${day}T${clock}Z`;
      entries.push({ at, pid: Number(pid), source: sourceOf(process), process, level, message });
    }
  }
  return entries.slice(-limit);
}

function sourceOf(process: string): LogEntry['source'] {
  if (process === 'catnap') return 'catnap';
  return ownProcesses.has(process) ? 'server' : 'session';
}
