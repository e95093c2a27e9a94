/**
 * The one logger. Secrets are kept out twice: callers never pass them, and the redaction below catches the
 * field names that could carry one.
 */
import { type DestinationStream, type Logger, pino } from 'pino';
import { openLogOutput } from './log-output.ts';
import { renderLogLine } from './log-text.ts';

export type { Logger } from 'pino';

const secretFields = [
  'password',
  'secret',
  'token',
  'key',
  'apiKey',
  'authorization',
  'cookie',
  'verifier',
  'adminSecret',
];

export const logLevels = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;
export type LogLevel = (typeof logLevels)[number];

/** `auto` is words on a terminal, and JSON everywhere else. */
export const logFormats = ['auto', 'json', 'text'] as const;
export type LogFormat = (typeof logFormats)[number];

export interface LoggerOptions {
  readonly level: LogLevel;
  readonly process: string;
  /** JSON unless it is `text`. */
  readonly format?: LogFormat;
  readonly destination?: DestinationStream;
}

const fatalLevel = 60;
let isHushed = false;

/** What processes miss of each other while all of them stop is for the log of a service, not for a person. */
export function hushTerminal(): void {
  isHushed = true;
}

export function createLogger(options: LoggerOptions): Logger {
  const settings = {
    level: options.level,
    base: { process: options.process },
    redact: {
      paths: secretFields.flatMap((name) => [name, `*.${name}`, `*.*.${name}`]),
      censor: '[redacted]',
    },
  };
  const destination = options.destination ?? openLogOutput({ onGap: (lines) => tellGap(lines) });
  const logger = pino(settings, options.format === 'text' ? inWords(destination) : destination);
  const tellGap = (lines: number) => logger.warn({ lines }, 'lines are missing here: the log took no more');
  return logger;
}

function inWords(destination: DestinationStream): DestinationStream {
  return {
    write: (line) => {
      const isFatal = line.startsWith(`{"level":${fatalLevel},`);
      if (!isHushed || isFatal) destination.write(renderLogLine(line));
    },
  };
}
