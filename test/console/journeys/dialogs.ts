/** Every dialog of the console, and what else opens above a page: fit for everybody in both themes, and on a phone. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { expect, test } from 'vitest';
import { violationsInBothThemes } from '../../helpers/accessibility.ts';
import {
  at,
  branchIdOf,
  button,
  dialog,
  open,
  ownProject,
  photograph,
  row,
  runDirectly,
  runSql,
  story,
  uriOf,
} from './story.ts';

const page = () => story().page;
const sources = fileURLToPath(new URL('../../../console', import.meta.url));
const wide = { width: 1440, height: 900 };
const phone = { width: 390, height: 844 };

type Step = () => Promise<void>;

const press = (name: string | RegExp) => () => button(name).first().click();
const pressIn = (line: RegExp, name: string | RegExp) => () => row(line).first().getByRole('button', { name }).click();
const item = (name: string | RegExp) => () => page().getByRole('menuitem', { name }).click();
const answer = (name: string) => () => button(name, dialog()).click();
const type = (label: string, text: string) => () => dialog().getByLabel(label, { exact: true }).fill(text);
const run = (text: string) => () => runSql(text);
const key = (name: string) => () => page().keyboard.press(name);
const ofMain = (name: string) => [press('Actions of main'), item(name)];
const pick = (name: string) => () => page().getByRole('gridcell', { name, exact: true }).first().click();
const cell = (name: string) => () => page().getByRole('gridcell', { name, exact: true }).first().dblclick();

const unprotect = (path: string) => async () => {
  await story().program.api('PATCH', path, { branch: { protected: false } });
};

/** The address, and what is done there until it is open; it is told from others by the words that it begins with. */
type Opening = readonly [title: string, path: string, ...steps: Step[]];

interface Places {
  readonly main: string;
  readonly feature: string;
  readonly leaf: string;
  readonly restored: string;
}

const ofAccount = (): Opening[] => [
  ['New project', '/', press('New project')],
  ['New API key', '/keys', press('New key')],
  ['The key “seen”', '/keys', press('New key'), type('Name', 'seen'), answer('Create key')],
  ['Revoke key', '/keys', pressIn(/seen/, 'Revoke')],
  ['Purge branch', '/deleted', press('Purge gone')],
];

const ofBranches = ({ main, feature, leaf, restored }: Places): Opening[] => [
  ['New branch', at(), press('New branch')],
  [
    'Connect',
    at('?connect=default'),
    () =>
      dialog()
        .getByText(/^psql '/)
        .waitFor(),
  ],
  ['Add a read replica to main', at(), ...ofMain('Add read replica')],
  ['Add a primary compute to leaf', at(), press('Actions of leaf'), item('Add compute')],
  ['Edit compute', at(), ...ofMain('Edit compute')],
  ['Move compute', at(), ...ofMain('Move compute')],
  ['Restart compute', at(), ...ofMain('Restart compute')],
  ['Delete compute', at(), ...ofMain('Delete compute')],
  ['Rename branch', feature, press('Rename')],
  ['Make default', feature, press('Make default')],
  ['Protect branch', main, press('Protect')],
  ['Stop protecting branch', feature, press('Stop protecting')],
  ['Expiry', feature, press('Expiry')],
  ['Restore feature-x', feature, press('Reset or restore')],
  ['Delete branch', leaf, press('Delete')],
  ['Delete branch', restored, press('Delete')],
  ['Branch from main at', main, press('Branch from it')],
  ['Restore main to', main, press('Restore to it')],
  ['Snapshot of main', main, press('Take a snapshot')],
  ['Snapshots of main', main, press('Schedule')],
  ['Restore monday', main, press('Restore monday')],
  ['Delete snapshot', main, press('Delete monday')],
  ['Replace main', restored, press('Replace main')],
];

const ofData = (): Opening[] => [
  ['Keyboard', at('/sql'), press('Keyboard')],
  ['History', at('/sql'), run('select 1'), press('History')],
  ['Saved queries', at('/sql'), press('Saved queries')],
  ['Rename the query', at('/sql'), press('Query menu'), item('Rename')],
  ['body', at('/sql'), run('select * from notes'), cell('first')],
  ['Write to the protected branch feature-x?', at('/sql?branch=feature'), run('delete from notes')],
  ['Apply 1 change', at('/tables?table=public.notes'), press('Insert row'), press('Review and apply')],
  [
    'Write to the protected branch feature-x?',
    at('/tables?table=public.notes&branch=feature'),
    press('Insert row'),
    press('Review and apply'),
  ],
  ['Install citext', at('/monitoring?view=extensions'), press('Install citext')],
  ['Remove pg_trgm', at('/monitoring?view=extensions'), press('Remove pg_trgm')],
  [
    'Terminate session',
    at('/monitoring?view=sessions'),
    () => button(/^Actions of session/, row(/lingerer/)).click(),
    item('Terminate session'),
  ],
  ['New role', at('/data'), press('New role')],
  ['Password of', at('/data'), press('New role'), type('Name', 'reader'), answer('Create role')],
  ['Reset password', at('/data'), pressIn(/reader/, 'Reset')],
  ['Delete role', at('/data'), pressIn(/reader/, 'Delete')],
  ['New database', at('/data'), press('New database')],
  ['Edit database', at('/data'), pressIn(/^neondb neondb_owner/, 'Edit')],
  ['Delete database', at('/data'), pressIn(/^neondb neondb_owner/, 'Delete')],
];

const ofSettings = ({ feature }: Places): Opening[] => [
  ['Logical replication', at('/settings'), press('Turn on logical replication')],
  ['Delete project', at('/settings'), press('Delete project')],
  ['New user', at('/auth'), press('New user')],
  ['Delete user', at('/auth'), pressIn(/ada@example/, 'Delete')],
  ['Remove domain', at('/auth?view=sign-in'), press('Remove')],
  ['Add OAuth provider', at('/auth?view=sign-in'), press('Add provider')],
  ['Change Microsoft', at('/auth?view=sign-in'), press('Edit Microsoft')],
  ['Remove Microsoft', at('/auth?view=sign-in'), press('Remove Microsoft')],
  ['New SDK keys', at('/auth?view=keys'), press('New SDK keys')],
  ['Keys for your app', at('/auth?view=keys'), press('New SDK keys'), answer('Create keys')],
  ['Transfer ownership', at('/auth?view=keys'), press('Transfer ownership')],
  ['Transfer ownership', at('/auth?view=keys'), press('Transfer ownership'), answer('Begin transfer')],
  ['Delete integration', at('/auth?view=keys'), press('Delete integration')],
  // Last, because it asks for a name only where no branch is protected.
  ['Delete project', at('/settings'), unprotect(feature), () => open(at('/settings')), press('Delete project')],
];

/** No dialogs, but above the page as well: their names, and where they are seen. */
const above = (): (readonly [selector: string, path: string, ...steps: Step[]])[] => [
  ['.cm-tooltip-autocomplete', at('/sql'), run('select * from no'), key('Control+Space')],
  ['[role=menu]', at('/sql'), run('select 42 as id'), pick('42'), press('Copy cell')],
  ['[role=combobox]', at(), () => button('Switch project').waitFor(), key('Control+k')],
  ['[popover]:popover-open', at(), press('Switch project')],
];

export function dialogs(): void {
  test('each of them is fit for everybody, light and dark, wide and on a phone', async () => {
    const { main, feature, leaf, restored, end } = await makeOccasions();
    const places = { main, feature, leaf, restored };
    const featureId = feature.split('/').at(-1) ?? '';
    const problems: string[] = [];
    const seen: string[] = [];
    for (const [title, path, ...steps] of [...ofAccount(), ...ofBranches(places), ...ofData(), ...ofSettings(places)]) {
      await open(path.replace('branch=feature', `branch=${featureId}`));
      for (const step of steps) await step();
      const heading = dialog().getByRole('heading', { level: 2 }).first();
      await dialog().getByRole('heading', { name: title }).first().waitFor();
      seen.push(await heading.innerText());
      problems.push(...(await problemsOf(title)));
    }
    await end();
    expect(problems).toEqual([]);
    expect(titlesNotSeen(seen)).toEqual([]);
  }, 600_000);

  test('and so are lists and menus that open above a page', async () => {
    await ownProject();
    await runDirectly(await uriOf('main'), 'create table notes as select 1 as id');
    const problems: string[] = [];
    for (const [selector, path, ...steps] of above()) {
      await open(path);
      for (const step of steps) await step();
      await page().locator(selector).first().waitFor();
      problems.push(...(await violationsInBothThemes(page())).map((violation) => `${selector}: ${violation}`));
    }
    expect(problems).toEqual([]);
  });
}

async function problemsOf(title: string): Promise<string[]> {
  await photograph(page(), `dialog ${title}`);
  const found = await violationsInBothThemes(page());
  if (await page().evaluate<boolean>("document.activeElement?.ariaLabel === 'Close'"))
    found.push('begins at its cross');
  for (const shape of [wide, phone]) {
    await page().setViewportSize(shape);
    const beyond = await page().evaluate<number>(`(() => {
      const dialog = document.querySelector('dialog');
      const { left, right } = dialog.getBoundingClientRect();
      return Math.max(-left, right - innerWidth, dialog.scrollWidth - dialog.clientWidth);
    })()`);
    if (beyond > 0) found.push(`${beyond} px beyond its edge on a screen of ${shape.width}`);
  }
  await page().setViewportSize(wide);
  return found.map((problem) => `${title}: ${problem}`);
}

/** What makes every dialog possible: things to change and delete, and somebody who is connected. */
async function makeOccasions(): Promise<Places & { readonly end: () => Promise<void> }> {
  await ownProject({ auth: true });
  const { program, project } = story();
  const send = async (method: string, path: string, body?: object) => {
    const reply = await program.api(method, path, body);
    expect(reply.status, `${method} ${path}`).toBeLessThan(300);
    await program.settle(project.id);
    return reply.body;
  };
  await runDirectly(await uriOf('main'), 'create table notes (id int primary key, body text)');
  await runDirectly(await uriOf('main'), 'create extension pg_trgm');
  await runDirectly(await uriOf('main'), "insert into notes values (1, 'first')");
  const branch = async (name: string, parent_id: string, endpoints: object[] = []) =>
    (await send('POST', at('/branches'), { branch: { name, parent_id }, endpoints })).branch.id;
  const mainId = await branchIdOf('main');
  const featureId = await branch('feature-x', mainId, [{ type: 'read_write' }]);
  const leafId = await branch('leaf', featureId);
  await send('PATCH', at(`/branches/${featureId}`), { branch: { protected: true } });
  await send('DELETE', at(`/branches/${await branch('gone', mainId)}`));
  const { snapshot } = await send('POST', at(`/branches/${mainId}/snapshot?name=monday`));
  const { branch: made } = await send('POST', at(`/snapshots/${snapshot.id}/restore`), {
    name: 'looked-at',
    target_branch_id: mainId,
    finalize_restore: false,
  });
  // A child of the restored one, so that its deletion is refused with the reason.
  await branch('below', made.id);
  const user = { auth_provider: 'stack', project_id: project.id, email: 'ada@example.com', name: 'Ada' };
  await send('POST', '/projects/auth/user', user);
  await send('POST', at('/auth/domains'), { auth_provider: 'stack', domain: 'https://app.example.com' });
  const microsoft = { id: 'microsoft', client_id: 'our-client', client_secret: 'our-secret' };
  await send('POST', at('/auth/oauth_providers'), microsoft);
  const client = new pg.Client({ connectionString: await uriOf('main'), application_name: 'lingerer' });
  client.on('error', () => {});
  await client.connect();
  // One that is merely idle is not listed.
  await client.query('begin');
  const pathOf = (id: string) => at(`/branches/${id}`);
  return {
    main: pathOf(mainId),
    feature: pathOf(featureId),
    leaf: pathOf(leafId),
    restored: pathOf(made.id),
    end: () => client.end(),
  };
}

/** Titles that stand in the sources of the console, of which none that was seen is an example. */
function titlesNotSeen(seen: readonly string[]): string[] {
  const files = readdirSync(sources, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.tsx'));
  const titles = files
    .map((file) => readFileSync(join(sources, file), 'utf8'))
    .flatMap((text) => [...text.matchAll(dialogStart)].flatMap(([, title = '']) => literalsOf(title)));
  expect(titles.length).toBeGreaterThan(50);
  return titles.filter((title) => {
    const words = title.split(/\$\{[^}]*\}/).map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'));
    return !seen.some((one) => new RegExp(`^${words.join('.+')}$`).test(one));
  });
}

const dialogStart = /<(?:Form|Confirm)?Dialog\s+title=("[^"]*"|\{(?:'[^']*'|`[^`]*`|[^'`}])*\})/g;

function literalsOf(title: string): string[] {
  if (title.startsWith('"')) return [title.slice(1, -1)];
  return [...title.matchAll(/'([^']*)'|`([^`]*)`/g)].map(([, plain, template]) => plain ?? template ?? '');
}
