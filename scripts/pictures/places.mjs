/**
 * Every page of the console and every dialog, over what `npm run demo` makes: a name, the address, and what is done
 * there before the picture. Nothing is confirmed, so the demo stays as it is.
 */

const press = (name) => (page) => page.getByRole('button', { name, exact: true }).first().click();
const inRow = (row, name) => (page) =>
  page.getByRole('row', { name: row }).first().getByRole('button', { name, exact: true }).click();
const steps =
  (...list) =>
  async (page) => {
    for (const step of list) await step(page);
  };
const item = (name) => (page) => page.getByRole('menuitem', { name, exact: true }).click();
const menu = (of, name) => steps(press(`Actions of ${of}`), ...(name === undefined ? [] : [item(name)]));
const see = (find) => (page) => find(page).first().waitFor();
const fill = (label, text) => (page) => page.getByLabel(label, { exact: true }).fill(text);
const key = (name) => (page) => page.keyboard.press(name);
const cell = (place) => (page) => page.getByRole('gridcell').nth(place).click();
const write = (text) => fill('SQL', text);
const run = (text) => steps(write(text), key('Control+Enter'));
const selected = (text) => steps(run(text), cell(3));
const text = (words) => see((page) => page.getByText(words));
const openCell = (place) => (page) => page.getByRole('gridcell').nth(place).dblclick();

export const bestCustomers = `select c.name, c.country, count(*) as orders, sum(o.total) as spent
from customers c join orders o on o.customer_id = c.id
group by c.id order by spent desc`;

const several = `do $$ begin raise notice 'counting the orders'; end $$;
select status, count(*) from orders group by status order by 2 desc;
select count(*) from customers;`;

/** Changes two cells of the first rows, without applying them. */
const change = async (page) => {
  const grid = page.getByRole('grid');
  const empty = page.getByRole('gridcell', { name: 'NULL' }).first();
  await page.getByRole('gridcell').first().waitFor();
  // On a phone its column is not drawn until it is on the screen.
  for (let left = 0; (await empty.count()) === 0 && left < 1_000; left += 100) {
    await grid.evaluate((element, to) => element.scrollTo(to, 0), left);
    await page.waitForTimeout(50);
  }
  await empty.click();
  await page.keyboard.type('call before delivery');
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Insert row' }).click();
};

export async function placesOf(demo) {
  const { projects } = await demo.api('GET', '/projects?limit=400');
  const pathOf = (name) => `/projects/${projects.find((one) => one.name === name).id}`;
  const [shop, monorepo, members] = ['shop', 'monorepo', 'members'].map(pathOf);
  const branches = await demo.branchesOf(shop.split('/')[2]);
  const branch = (name) => `${shop}/branches/${branches.find((one) => one.name === name).id}`;
  const ofBranch = (name) => `branch=${branches.find((one) => one.name === name).id}`;
  return [
    ...account(),
    ...dashboard(shop, monorepo),
    ...ofBranches(branch),
    ...sql(shop),
    ...tables(shop, ofBranch),
    ...ofProject(shop, ofBranch),
    ...auth(shop, members),
    ['api-reference', '/api/v2/docs'],
    ['auth-provider', '/stack/dashboard'],
    ['status', '/status'],
  ];
}

const account = () => [
  ['projects', '/'],
  ['new-project', '/', press('New project')],
  ['keys', '/keys'],
  ['new-key', '/keys', press('New key')],
  ['organization', '/organization'],
  ['deleted', '/deleted'],
  ['purge', '/deleted', press('Purge preview/pr-1029')],
  ['about', '/about'],
  ['not-found', '/nowhere'],
  ['psql-login', `/psql#${'x'.repeat(43)}`],
];

const dashboard = (shop, monorepo) => [
  ['dashboard', shop],
  ['dashboard-188', monorepo],
  ['new-branch', shop, press('New branch')],
  ['connect', `${shop}?connect=default`],
  [
    'palette',
    shop,
    steps(
      key('Control+k'),
      see((page) => page.getByRole('combobox')),
    ),
  ],
  ['branch-menu', shop, menu('main')],
  ['edit-compute', shop, menu('main', 'Edit compute')],
  ['move-compute', shop, menu('main', 'Move compute')],
  ['restart-compute', shop, menu('main', 'Restart compute')],
  ['delete-compute', shop, menu('main', 'Delete compute')],
  ['add-replica', shop, menu('main', 'Add read replica')],
];

const ofBranches = (branch) => [
  ['branch', branch('main')],
  ['switch-branch', branch('main'), press('Switch branch')],
  ['rename-branch', branch('staging'), press('Rename')],
  ['make-default', branch('staging'), press('Make default')],
  ['protect', branch('staging'), press('Protect')],
  ['expiry', branch('staging'), press('Expiry')],
  ['restore', branch('staging'), press('Reset or restore')],
  ['delete-with-children', branch('staging'), press('Delete')],
  ['delete-branch', branch('qa/nightly'), press('Delete')],
  ['branch-from-moment', branch('main'), press('Branch from it')],
  ['restore-to-moment', branch('main'), press('Restore to it')],
  ['snapshot', branch('main'), press('Take a snapshot')],
  ['schedule', branch('main'), press('Schedule')],
  ['restore-snapshot', branch('main'), press('Restore end of the quarter')],
  ['delete-snapshot', branch('main'), press('Delete end of the quarter')],
];

const sql = (shop) => [
  ['sql', `${shop}/sql`, selected(bestCustomers)],
  ['sql-wide', `${shop}/sql`, selected('select * from measurements')],
  [
    'sql-messages',
    `${shop}/sql`,
    steps(run(several), (page) => page.getByRole('tab', { name: 'Messages (1)' }).click()),
  ],
  [
    'sql-error',
    `${shop}/sql`,
    steps(
      run('select nmae from customers'),
      see((page) => page.getByRole('alert')),
    ),
  ],
  ['sql-plan', `${shop}/sql`, steps(write(bestCustomers), press('Analyze'), text('rolled back'))],
  ['sql-value', `${shop}/sql`, steps(run('select * from products'), openCell(3))],
  ['sql-copy', `${shop}/sql`, steps(selected(bestCustomers), key('Control+a'), key('Shift+F10'))],
  ['sql-protected', `${shop}/sql`, run('delete from reviews')],
  ['sql-help', `${shop}/sql`, press('Keyboard')],
  ['sql-history', `${shop}/sql`, press('History')],
  ['sql-saved', `${shop}/sql`, press('Saved queries')],
  ['sql-rename', `${shop}/sql`, steps(press('Query menu'), item('Rename'))],
];

const tables = (shop, ofBranch) => [
  ['tables', `${shop}/tables?table=public.orders`],
  ['tables-filter', `${shop}/tables?table=public.orders`, steps(press('Filter'), fill('Value of filter 1', '17'))],
  ['tables-changed', `${shop}/tables?table=public.orders&${ofBranch('staging')}`, change],
  [
    'tables-apply',
    `${shop}/tables?table=public.orders&${ofBranch('staging')}`,
    steps(change, press('Review and apply')),
  ],
  ['structure', `${shop}/tables?table=public.orders&view=structure`],
  ['diagram', `${shop}/tables?table=public.orders&view=diagram`],
];

const ofProject = (shop, ofBranch) => [
  ['monitoring', `${shop}/monitoring`],
  ['sessions', `${shop}/monitoring?view=sessions`],
  ['queries', `${shop}/monitoring?view=queries`],
  ['locks', `${shop}/monitoring?view=locks`],
  ['log', `${shop}/monitoring?view=log`],
  ['extensions', `${shop}/monitoring?view=extensions`],
  ['install-extension', `${shop}/monitoring?view=extensions`, press('Install pg_trgm')],
  ['data', `${shop}/data`],
  ['new-role', `${shop}/data`, press('New role')],
  ['reset-password', `${shop}/data`, inRow(/neondb_owner/, 'Reset')],
  ['delete-role', `${shop}/data?${ofBranch('staging')}`, inRow(/^reporting/, 'Delete')],
  ['new-database', `${shop}/data`, press('New database')],
  ['edit-database', `${shop}/data`, inRow(/^neondb neondb_owner/, 'Edit')],
  ['delete-database', `${shop}/data`, inRow(/^neondb neondb_owner/, 'Delete')],
  ['operations', `${shop}/operations`],
  ['operations-failed', `${shop}/operations?status=failed`],
  ['settings', `${shop}/settings`],
  ['logical-replication', `${shop}/settings`, press('Turn on logical replication')],
  ['delete-protected', `${shop}/settings`, press('Delete project')],
];

const auth = (shop, members) => [
  ['auth-setup', `${shop}/auth`],
  ['auth', `${members}/auth`],
  ['new-user', `${members}/auth`, press('New user')],
  ['delete-user', `${members}/auth`, inRow(/@example/, 'Delete')],
  ['auth-sign-in', `${members}/auth?view=sign-in`],
  ['add-provider', `${members}/auth?view=sign-in`, press('Add provider')],
  ['remove-domain', `${members}/auth?view=sign-in`, press('Remove')],
  ['auth-keys', `${members}/auth?view=keys`],
  ['new-sdk-keys', `${members}/auth?view=keys`, press('New SDK keys')],
  ['transfer', `${members}/auth?view=keys`, press('Transfer ownership')],
  ['delete-integration', `${members}/auth?view=keys`, press('Delete integration')],
  ['auth-mails', `${members}/auth?view=mails`],
  ['delete-project', `${members}/settings`, press('Delete project')],
];
