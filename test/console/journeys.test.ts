/**
 * The console in a browser, over the whole program with real Postgres servers. Each test makes what it needs, so they
 * can run in any order and each of them alone.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { account } from './journeys/account.ts';
import { activity } from './journeys/activity.ts';
import { auth } from './journeys/auth.ts';
import { branches } from './journeys/branches.ts';
import { computes } from './journeys/computes.ts';
import { data } from './journeys/data.ts';
import { dialogs } from './journeys/dialogs.ts';
import { everyPage } from './journeys/every-page.ts';
import { finding } from './journeys/finding.ts';
import { firstQuery } from './journeys/first-query.ts';
import { grid } from './journeys/grid.ts';
import { psqlLogin } from './journeys/psql-login.ts';
import { quotas } from './journeys/quotas.ts';
import { sqlEditor } from './journeys/sql-editor.ts';
import {
  at,
  beginStory,
  branchIdOf,
  button,
  confirm,
  confirmTyped,
  dialog,
  endStory,
  endTest,
  newPage,
  open,
  ownProject,
  photograph,
  signIn,
  story,
  walkTo,
} from './journeys/story.ts';
import { tables } from './journeys/tables.ts';
import { trouble } from './journeys/trouble.ts';

beforeAll(beginStory);

afterEach(async ({ task }) => {
  if (task.result?.state === 'fail') await photograph(story().page, `failed ${task.name.slice(0, 40)}`);
  await endTest();
  expect(story().faults.splice(0), 'what a page has thrown').toEqual([]);
});

afterAll(endStory);

describe('from the first visit to the first query', firstQuery);
describe('the data grid', grid);
describe('the SQL editor', sqlEditor);
describe('tables', tables);
describe('finding the way', finding);
describe('computes', computes);
describe('what a compute does', activity);
describe('quotas', quotas);
describe('branches', branches);
describe('data', data);
describe('accounts', account);
describe('auth', auth);
describe('logins without a password', psqlLogin);
describe('every page', everyPage);
describe('dialogs', dialogs);
describe('when something is wrong', trouble);

test('a project is deleted with its name typed, once no branch is protected, brought back, and purged', async () => {
  await ownProject({ branches: ['feature-x'] });
  const { page, program, project, own } = story();
  const feature = at(`/branches/${await branchIdOf('feature-x')}`);
  await program.api('PATCH', feature, { branch: { protected: true } });
  await open(at('/settings'));
  await button('Delete project').click();
  await dialog()
    .getByText(/^A project with a protected branch cannot be deleted/)
    .waitFor();
  expect(await dialog().getByLabel(/^Type/).count()).toBe(0);
  await dialog().getByRole('link', { name: 'feature-x' }).click();
  await button('Stop protecting').click();
  await confirm('Stop protecting');
  await walkTo(at('/settings'));
  await button('Delete project').click();
  await confirmTyped(project.name, 'Delete project');
  await page.getByText(`Project ${project.name} is deleted.`).waitFor();
  expect(new URL(page.url()).pathname).toBe('/');
  await page.getByRole('link', { name: 'Deleted' }).click();
  await page
    .getByRole('cell', { name: /^in (7|6\.9) days$/ })
    .first()
    .waitFor();
  await photograph(page, 'deleted');
  await page.getByRole('button', { name: `Recover ${project.name}` }).click();
  await page.getByText(`Project ${project.name} is back, with everything it had.`).waitFor();
  await open(feature);
  await button('Delete').click();
  await confirmTyped('feature-x', 'Delete branch');
  await page.getByText('Branch feature-x is deleted.').waitFor();
  // Its own page offers it back, and so does the dashboard.
  await open(feature);
  await page.getByRole('button', { name: 'Recover feature-x' }).waitFor();
  await open(at());
  await page.getByRole('button', { name: 'Recover feature-x' }).click();
  await page.getByText('Branch feature-x is back, with everything it had.').waitFor();
  await program.api('DELETE', feature);
  await open('/deleted');
  await page.getByRole('cell', { name: `branch of ${project.name}` }).waitFor();
  await page.getByRole('button', { name: 'Purge feature-x' }).click();
  await confirmTyped('feature-x', 'Purge');
  await page.getByText('Branch feature-x is removed for good.').waitFor();
  await page.getByRole('cell', { name: `branch of ${project.name}` }).waitFor({ state: 'detached' });
  expect(own).toHaveLength(1);
});

test('sign-out ends the sign-in', async () => {
  const { browser, baseURL } = story();
  const visitor = await browser.visit({ baseURL });
  const page = await newPage(visitor);
  await page.goto('/');
  await signIn(page);
  await button('Sign out', page).click();
  await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  await page.goto('/keys');
  await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  expect(new URL(page.url()).pathname).toBe('/keys');
  await visitor.close();
});
