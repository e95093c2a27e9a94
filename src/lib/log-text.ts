/** One entry of the log as a person reads it on a terminal: a line of words, without JSON and without a stack. */

const levelWords: Readonly<Record<number, string>> = {
  10: 'trace',
  20: 'debug',
  30: 'info',
  40: 'warning',
  50: 'error',
  60: 'fatal',
};

interface Entry {
  readonly time: number;
  readonly level: number;
  readonly process?: string;
  readonly msg?: string;
  readonly err?: { readonly message?: string };
  readonly [fact: string]: unknown;
}

export function renderLogLine(line: string): string {
  const { time, level, process, msg, err, reason, ...facts } = JSON.parse(line) as Entry;
  const cause = err?.message ?? (typeof reason === 'string' ? reason : undefined);
  const told = Object.entries(facts).flatMap(([name, value]) => (isShort(value) ? [`${name} ${value}`] : []));
  const words = [
    new Date(time).toTimeString().slice(0, 8),
    levelWords[level] ?? String(level),
    `${process === undefined ? '' : `${process}: `}${msg ?? ''}${cause === undefined ? '' : `: ${cause}`}`,
    ...(told.length === 0 ? [] : [`(${told.join(', ')})`]),
  ];
  // A message of somebody else may have several lines.
  return `${words.join(' ').replaceAll(/\s*\n\s*/g, ' ')}\n`;
}

const isShort = (value: unknown) => ['string', 'number', 'boolean'].includes(typeof value);
