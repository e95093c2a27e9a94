/**
 * Variables that are nearly settings: what they say would pass unheard. Others with the prefix may be somebody's own:
 * only those that are a letter or two away from a setting are named.
 */
import type { Environment } from './config-values.ts';
import { settingDocs } from './setting-docs.ts';

export interface MisspeltSetting {
  readonly name: string;
  readonly meant: string;
}

const lettersMax = 2;

export function findMisspeltSettings(env: Environment): MisspeltSetting[] {
  const settings = settingDocs.map(([name]) => name);
  return Object.keys(env)
    .filter((name) => name.startsWith('CATNAP_'))
    .flatMap((name) => {
      const near = settings
        .map((setting) => withMajorOf(name, setting))
        .map((meant) => ({ name, meant, letters: lettersBetween(name, meant) }))
        .toSorted((a, b) => a.letters - b.letters);
      return near.slice(0, 1).filter(({ letters }) => letters > 0 && letters <= lettersMax);
    })
    .map(({ name, meant }) => ({ name, meant }));
}

export const misspeltWords = ({ name, meant }: MisspeltSetting) =>
  `${name} is set, but no setting has that name: is ${meant} meant?`;

/** Some settings there are for each major. */
const withMajorOf = (name: string, setting: string) =>
  setting.replace('<major>', /_(\d+)$/.exec(name)?.[1] ?? '<major>');

/** How many letters must be changed, added or left out. */
function lettersBetween(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (const [row, letter] of [...a].entries()) {
    const current = [row + 1];
    for (const [column, other] of [...b].entries()) {
      const changed = (previous[column] ?? 0) + (letter === other ? 0 : 1);
      current.push(Math.min(changed, (previous[column + 1] ?? 0) + 1, (current[column] ?? 0) + 1));
    }
    previous = current;
  }
  return previous[b.length] ?? 0;
}
