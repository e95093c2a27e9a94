/**
 * What all journeys share: one program with real Postgres servers, one browser, and a visitor who is signed in. Each
 * test chooses its project first, with `ownProject` if it changes something and `sharedProject` if it only looks, so
 * that the tests can run in any order.
 */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { BrowserContext, Locator, Page } from 'playwright-core';
import { expect } from 'vitest';
import { violationsInBothThemes } from '../../helpers/accessibility.ts';
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
  /** The project of the test that runs. */
  project: { readonly id: string; readonly name: string };
  /** Made by `ownProject` in the test that runs. */
  readonly own: string[];
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
  const page = await watchedPage(visitor, faults);
  begun = { program, browser, baseURL, visitor, page, faults, own: [], project: { id: '', name: '' } };
  await page.goto('/');
  await signIn(page);
  await page.getByText('There is no project yet.').waitFor();
}

/** Of the kind that a first start prints on a terminal, and `catnap open` makes: what stands behind the address. */
export async function makeLink(): Promise<string> {
  const { baseURL, program } = story();
  const headers = { authorization: `Bearer ${await program.apiKey()}` };
  const reply = await fetch(`${baseURL}/console/link`, { method: 'POST', headers });
  return `#open=${((await reply.json()) as { link: string }).link}`;
}

export async function signIn(page: Page): Promise<void> {
  await page.getByLabel('API key').fill(await story().program.apiKey());
  await button('Sign in', page).click();
  await button('New project', page).waitFor();
}

/**
 * Removes what the test has made for itself, and what it has put between the page and the server. For good: homes may
 * be in memory, and all the projects of all journeys would take gigabytes of it.
 */
export async function endTest(): Promise<void> {
  const { program, page, own } = story();
  await page.unrouteAll();
  for (const id of own.splice(0)) {
    await program.api('DELETE', `/projects/${id}`);
    await program.api('POST', `/projects/${id}/purge`);
  }
}

export async function endStory(): Promise<void> {
  await begun?.browser.close();
  await begun?.program.destroy();
}

export const newPage = (context: BrowserContext) => watchedPage(context, story().faults);

async function watchedPage(context: BrowserContext, faults: string[]): Promise<Page> {
  const page = await context.newPage();
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
/** What the menu of a branch, or of a compute on the page of its branch, has to offer. */
export async function choose(item: string, on: Locator): Promise<void> {
  await button(/^Actions of /, on).click();
  await story().page.getByRole('menuitem', { name: item, exact: true }).click();
}
export const row = (name: RegExp, on: Place = story().page) => on.getByRole('row', { name });
export const at = (path = '') => `/projects/${story().project.id}${path}`;

/** The page anew, whatever the test before has left open in it. */
export async function open(path: string): Promise<void> {
  await story().page.goto(path);
}

export interface ProjectOptions {
  /** With a table `invoices` of two rows. */
  readonly invoices?: boolean;
  /** Names of branches of its root, each with a compute. */
  readonly branches?: readonly string[];
  /** With an integration of the embedded auth provider. */
  readonly auth?: boolean;
}

let ownMade = 0;

/** A project that this test alone uses; it is deleted afterwards. */
export async function ownProject(options: ProjectOptions = {}): Promise<void> {
  ownMade += 1;
  const made = await makeProject(`own-${ownMade}`, options);
  story().own.push(made.id);
  story().project = made;
}

let shared: Story['project'] | undefined;

/** The project `billing`, with invoices, for tests that change nothing in it. */
export async function sharedProject(): Promise<void> {
  shared ??= await makeProject('billing', { invoices: true });
  story().project = shared;
}

async function makeProject(name: string, options: ProjectOptions): Promise<Story['project']> {
  const { program } = story();
  const { body } = await program.api('POST', '/projects', { project: { name } });
  const { id } = body.project;
  await program.settle(id);
  if (options.invoices) await runDirectly(body.connection_uris[0].connection_uri, invoices);
  for (const branch of options.branches ?? []) {
    await program.api('POST', `/projects/${id}/branches`, {
      branch: { name: branch },
      endpoints: [{ type: 'read_write' }],
    });
    await program.settle(id);
  }
  if (options.auth) {
    const order = { auth_provider: 'stack', project_id: id, branch_id: body.branch.id };
    await program.api('POST', '/projects/auth/create', order);
    await program.settle(id);
  }
  return { id, name };
}

const invoices = `create table invoices as
  select id, customer from (values (1, 'Ada'), (2, null)) as rows (id, customer)`;

/** One statement without the console. */
export async function runDirectly(uri: string, query: string): Promise<void> {
  const reply = await fetch(`${story().baseURL}/sql`, {
    method: 'POST',
    headers: { 'neon-connection-string': uri },
    body: JSON.stringify({ query, params: [] }),
  });
  if (!reply.ok) throw new Error(await reply.text());
}

/** As a click on a link does: another page without loading everything anew. */
export async function walkTo(path: string, page = story().page): Promise<void> {
  await page.evaluate(`history.pushState({}, '', ${JSON.stringify(path)})`);
}

const dialogsLookedAt = new Set<string>();

/** Each dialog that a journey answers is fit for everybody, in both themes; looked at when it is met first. */
export async function expectFitDialog(): Promise<void> {
  const title = await dialog().getByRole('heading').first().innerText();
  if (dialogsLookedAt.has(title)) return;
  dialogsLookedAt.add(title);
  await photograph(story().page, `dialog ${title}`);
  expect(await violationsInBothThemes(story().page), `the dialog “${title}”`).toEqual([]);
}

/** Presses the button of the dialog that says so, and waits until it is closed. */
export async function confirm(name: string): Promise<void> {
  await expectFitDialog();
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

/** The connection string of a branch's database, as its owner. */
export async function uriOf(branch: string): Promise<string> {
  const query = `database_name=neondb&role_name=neondb_owner&branch_id=${await branchIdOf(branch)}`;
  return (await story().program.api('GET', at(`/connection_uri?${query}`))).body.uri;
}

export async function branchIdOf(name: string): Promise<string> {
  const { body } = await story().program.api('GET', at(`/branches?search=${name}`));
  return body.branches.find((branch: { name: string }) => branch.name === name).id;
}
