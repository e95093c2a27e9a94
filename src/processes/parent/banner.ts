/** The few lines that a person sees when Catnap is up. */
import { type CommandName, shellQuote } from '../../lib/command-name.ts';
import type { Config } from '../../lib/config.ts';
import { apiKeyPath } from '../../machine/key-files.ts';

export interface BannerFacts {
  readonly config: Config;
  readonly version: string;
  readonly newApiKey: string | null;
  readonly consoleLink: string | null;
  readonly notes: readonly string[];
  readonly command: CommandName;
  /** Names of the child processes that run, up to three. */
  readonly processes: readonly string[];
  /** Otherwise it goes into a log, such as the journal, which others may read and which is kept: no secrets then. */
  readonly isOnTerminal: boolean;
}

export function renderBanner(facts: BannerFacts): string {
  const { config, version, notes, command, processes } = facts;
  const { newApiKey, consoleLink } = facts.isOnTerminal ? facts : { newApiKey: null, consoleLink: null };
  const keyPath = apiKeyPath(config.home);
  const lines = [`Catnap ${version} is up${processes.length === 3 ? '' : ` (${processes.join(', ')})`}`, ''];
  const row = (name: string, value: string) => lines.push(`  ${name.padEnd(12)}${value}`);
  row('API', `${config.publicUrl}/api/v2`);
  // After the #, so that no log and no proxy sees it.
  const signsIn =
    consoleLink === null
      ? `  (\`${command} open\` signs you in)`
      : `#open=${consoleLink}  (signs you in, once, within the hour)`;
  row('Console', `${config.publicUrl}/${signsIn}`);
  row('Databases', `port ${config.pgPort} on ${config.bind}`);
  row('Data', config.home);
  row('API key', newApiKey === null ? `in ${keyPath}` : `${newApiKey}  (shown once; also in ${keyPath})`);
  for (const note of notes) row('Note', note);
  lines.push('', '  Create a project:', '');
  lines.push(`    curl -s -X POST ${config.publicUrl}/api/v2/projects \\`);
  lines.push(`      -H "authorization: Bearer $(cat ${shellQuote(keyPath)})" \\`);
  lines.push(`      -H 'content-type: application/json' -d '{"project":{"name":"hello"}}'`);
  lines.push('', '  Ctrl-C stops Catnap; databases keep running and are found again at the next start.', '');
  return `${lines.join('\n')}\n`;
}
