import { describe, expect, it } from 'vitest';
import { createLogger, hushTerminal } from './log.ts';

/** What a logger for people has written. */
function logged(write: (log: ReturnType<typeof createLogger>) => void): string {
  let text = '';
  const destination = {
    write: (line: string) => {
      text += line;
    },
  };
  write(createLogger({ level: 'warn', process: 'worker', format: 'text', destination }));
  return text;
}

describe('the log on a terminal', () => {
  it('is a line of words, with the cause and without its stack', () => {
    const text = logged((log) => {
      log.warn({ err: new Error('EACCES: permission denied'), endpoint: 'ep-1' }, 'a step failed');
      log.error({ reason: 'no route\nto host', deaths: 2, token: 'abc', facts: { a: 1 } }, 'it is gone');
      log.info('nobody reads this');
    });
    expect(text.replaceAll(/^\d\d:\d\d:\d\d/gm, 'TIME').split('\n')).toEqual([
      'TIME warning worker: a step failed: EACCES: permission denied (endpoint ep-1)',
      'TIME error worker: it is gone: no route to host (deaths 2, token [redacted])',
      '',
    ]);
  });

  it('is silent while Catnap stops, except for what is fatal', () => {
    const text = logged((log) => {
      hushTerminal();
      log.error('the other processes are gone');
      log.fatal('the data is damaged');
    });
    expect(text).not.toContain('the other processes');
    expect(text).toContain('fatal worker: the data is damaged');
  });
});
