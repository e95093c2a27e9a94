/**
 * The one logger. Secrets are kept out twice: callers never pass them, and the redaction below catches the
 * field names that could carry one.
 */
import { type DestinationStream, type Logger, pino } from 'pino';

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

export function createLogger(options: { level: LogLevel; process: string; destination?: DestinationStream }): Logger {
  const settings = {
    level: options.level,
    base: { process: options.process },
    redact: {
      paths: secretFields.flatMap((name) => [name, `*.${name}`, `*.*.${name}`]),
      censor: '[redacted]',
    },
  };
  return options.destination ? pino(settings, options.destination) : pino(settings);
}
