/** Console, API reference and auth provider look like one product: the same logo, colours and type. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { docsPage } from '../../src/api/pages/docs-page.ts';
import { iconLink, logo, pageStyle } from '../../src/lib/page-style.ts';

const read = (path: string) => readFileSync(new URL(`../../console/${path}`, import.meta.url), 'utf8');
/** `--ink: …;` by name. */
const propertiesOf = (css: string) =>
  new Map([...css.matchAll(/^\s*(--[\w-]+): ([^;]+);$/gm)].map(([, name = '', value = '']) => [name, value]));
const pathsOf = (text: string) => [...text.matchAll(/ d=["']([^"']+)["']/g)].map(([, path]) => path);

test('colours and type of every page are those of the console', () => {
  const console = propertiesOf(read('styles/base.css'));
  const pages = propertiesOf(pageStyle);
  expect(pages.size).toBeGreaterThan(12);
  for (const [name, value] of pages) expect([name, value]).toEqual([name, console.get(name)]);
  // A name that nothing defines would fall back to black on white.
  for (const [, name = ''] of docsPage.html.matchAll(/var\((--[\w-]+)\)/g)) expect([...pages.keys()]).toContain(name);
});

test('the logo of every page is that of the console', () => {
  const drawn = pathsOf(read('ui/icons.tsx'));
  expect(drawn).toHaveLength(2);
  expect(pathsOf(logo)).toEqual(drawn);
  expect(pathsOf(read('icon.svg'))).toEqual(drawn);
  expect(pathsOf(decodeURIComponent(iconLink))).toEqual(drawn);
  expect(docsPage.html).toContain(logo);
});
