/** What keeps somebody from using a page, as axe finds it. */
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';

const { resolve } = createRequire(import.meta.url);
const { source } = createRequire(resolve('@axe-core/playwright'))('axe-core') as { readonly source: string };

/**
 * The checker is brought into the page once, with its first look, and stays: bringing it anew takes as long again.
 * What lies behind an open dialog cannot be reached, and is looked at without it.
 */
export async function violationsOf(page: Page): Promise<string[]> {
  if (!(await page.evaluate<boolean>("'axe' in window"))) await page.evaluate(source);
  const look = "axe.run(document.querySelector('dialog') ?? document, { resultTypes: ['violations'] })";
  const read = "({ id, nodes }) => [id, ...nodes.map(({ html }) => html)].join(' | ')";
  return page.evaluate<string[]>(`${look}.then(({ violations }) => violations.map(${read}))`);
}
