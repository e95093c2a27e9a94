/** The doctor's look at the settings themselves; a bad value is refused before. */
import type { Config } from '../../lib/config.ts';
import { misspeltWords } from '../../lib/misspelt-settings.ts';
import { type Check, ok, warn } from './check.ts';

export function checkSettings({ misspelt }: Pick<Config, 'misspelt'>): Check {
  if (misspelt.length === 0) return ok('settings', 'none is misspelt');
  return warn('settings', misspelt.map(misspeltWords).join(' '), 'see the table of settings in README.md, or unset it');
}
