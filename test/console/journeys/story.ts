/**
 * What all journeys share: one program with real Postgres servers, one browser, and the visitor who clicks through the
 * story. The journeys run in the order of `journeys.test.ts`, each where the one before has left off.
 */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { BrowserContext, Locator, Page } from 'playwright-core';
import { startBrowser, type TestBrowser } from '../../helpers/browser.ts';
import { Program } from '../../helpers/program.ts';

/** Set to a folder, every page is photographed there. */
export const screenshots = process.env.CATNAP_SCREENSHOTS || undefined;

export interface Story {
  readonly program: Program;
  readonly browser: TestBrowser;
  readonly baseURL: string;
  readonly visitor: BrowserContext;
  readonly page: Page;
  /** The project that the first journey makes. */
  projectId: string;
  /** What a page throws, or writes to its console as an error. */
  readonly faults: string[];
}

let begun: Story | undefined;

export function story(): Story {
  if (begun === undefined) throw new Error('BUG: the story has not begun');
  return begun;
}

export async function beginStory(): Promise<void> {
  const [program, browser] = await Promise.all([
    Program.create({ CATNAP_SUSPEND_MIN_SECONDS: '1' }).then(async (made) => {
      await made.start();
      return made;
    }),
    startBrowser(),
  ]);
  if (screenshots !== undefined) await mkdir(screenshots, { recursive: true });
  const baseURL = `http://localhost:${program.httpPort}`;
  const visitor = await browser.visit({ baseURL });
  const faults: string[] = [];
  begun = { program, browser, baseURL, visitor, faults, projectId: '', page: await watchedPage(visitor, faults) };
}

export async function endStory(): Promise<void> {
  await begun?.browser.close();
  await begun?.program.destroy();
}

export const newPage = (context: BrowserContext) => watchedPage(context, story().faults);

async function watchedPage(context: BrowserContext, faults: string[]): Promise<Page> {
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  page.on('pageerror', (error) => faults.push(error.message));
  page.on('console', (message) => {
    if (message.type() === 'error' && !isRefusal(message.text())) faults.push(`${page.url()}: ${message.text()}`);
  });
  return page;
}

/** The browser writes down replies that are no success, and tests provoke some. */
const isRefusal = (text: string) => text.startsWith('Failed to load resource');

export async function photograph(page: Page, name: string, fullPage = false): Promise<void> {
  if (screenshots === undefined) return;
  await page.screenshot({ path: join(screenshots, `${name.replaceAll(/\W+/g, '-')}.png`), fullPage });
}

type Place = Page | Locator;
export const button = (name: string | RegExp, on: Place = story().page) =>
  on.getByRole('button', { name, exact: true });
export const dialog = () => story().page.getByRole('dialog');
/** A branch with its computes, on the dashboard. */
export const branchNode = (name: string) => story().page.getByRole('article', { name: `Branch ${name}`, exact: true });
export const row = (name: RegExp, on: Place = story().page) => on.getByRole('row', { name });
export const at = (path = '') => `/projects/${story().projectId}${path}`;

/** As a click on a link does: another page without loading everything anew. */
export async function walkTo(path: string, page = story().page): Promise<void> {
  await page.evaluate(`history.pushState({}, '', ${JSON.stringify(path)})`);
}

/** Presses the button of the dialog that says so, and waits until it is closed. */
export async function confirm(name: string): Promise<void> {
  await button(name, dialog()).click();
  await dialog().waitFor({ state: 'detached' });
}

/** For what cannot be undone. */
export async function confirmTyped(text: string, name: string): Promise<void> {
  await dialog().getByLabel(/^Type/).fill(text);
  await confirm(name);
}

export async function runSql(text: string): Promise<void> {
  const { page } = story();
  const editor = page.getByLabel('SQL', { exact: true });
  await editor.click();
  await editor.fill(text);
  await page.keyboard.press('Control+Enter');
}

export async function branchIdOf(name: string): Promise<string> {
  const { body } = await story().program.api('GET', at(`/branches?search=${name}`));
  return body.branches.find((branch: { name: string }) => branch.name === name).id;
}
