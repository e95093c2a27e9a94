/** What keeps somebody from using a page, as axe finds it. */
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';

const { resolve } = createRequire(import.meta.url);
const { source } = createRequire(resolve('@axe-core/playwright'))('axe-core') as { readonly source: string };

/** The rules whose answer another theme can change. */
const themeRules = ['color-contrast', 'link-in-text-block'];
/** Those, and the rules whose answer another width can change. */
const lookRules = [...themeRules, 'scrollable-region-focusable', 'target-size'];

/**
 * The checker is brought into the page once, with its first look, and stays: bringing it anew takes as long again.
 * What lies behind an open dialog cannot be reached, and is looked at without it.
 */
export async function violationsOf(page: Page, rules?: readonly string[]): Promise<string[]> {
  if (!(await page.evaluate<boolean>("'axe' in window"))) await page.evaluate(source);
  const runOnly = rules === undefined ? {} : { runOnly: { type: 'rule', values: rules } };
  const options = JSON.stringify({ resultTypes: ['violations'], ...runOnly });
  const look = `axe.run(document.querySelector('dialog') ?? document, ${options})`;
  const read = "({ id, nodes }) => [id, ...nodes.map(({ html }) => html)].join(' | ')";
  return page.evaluate<string[]>(`${look}.then(({ violations }) => violations.map(${read}))`);
}

/** Only what can be otherwise than in another theme or at another width, where the rest was looked at. */
export const looksOf = (page: Page): Promise<string[]> => violationsOf(page, lookRules);

/** Everything in the light, and in the dark what is otherwise there. The page is light afterwards. */
export async function violationsInBothThemes(page: Page): Promise<string[]> {
  const light = await violationsOf(page);
  await page.emulateMedia({ colorScheme: 'dark' });
  const dark = await violationsOf(page, themeRules);
  await page.emulateMedia({ colorScheme: 'light' });
  return [...light, ...dark.map((violation) => `in the dark: ${violation}`)];
}
