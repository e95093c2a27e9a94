/**
 * `npm run demo`: fills a running Catnap with projects to look at, through the public API and SQL alone. Whatever is
 * there already, by its name, is left as it is, so that the script can be run again after it was stopped.
 */
import { parseArgs } from 'node:util';
import { openDemo } from './demo/client.mjs';
import { makeMembers } from './demo/members.mjs';
import { makeMonorepo } from './demo/monorepo.mjs';
import { makeShop } from './demo/shop.mjs';

const usage = `npm run demo -- [--api-url URL] [--api-key KEY] [--branches N] [--only shop|monorepo|members]

  --api-url   where Catnap listens (default: http://localhost:7070, or the port in CATNAP_HTTP_PORT)
  --api-key   a personal key (default: the one that \`catnap keys show\` prints)
  --branches  how many branches the project monorepo gets, from 1 to 5000 (default: 188)
  --only      one of the projects`;

const projects = { shop: makeShop, monorepo: makeMonorepo, members: makeMembers };

try {
  await main();
} catch (error) {
  console.error(`demo: ${error.message}`);
  process.exitCode = 1;
}

async function main() {
  const { values } = parseArgs({
    options: {
      'api-url': { type: 'string' },
      'api-key': { type: 'string' },
      branches: { type: 'string', default: '188' },
      only: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    },
  });
  if (values.help) return console.log(usage);
  const branches = Number(values.branches);
  if (!Number.isInteger(branches) || branches < 1 || branches > 5_000) {
    throw new Error(`--branches is ${values.branches}; allowed: a whole number from 1 to 5000`);
  }
  if (values.only !== undefined && !Object.hasOwn(projects, values.only)) {
    throw new Error(`--only is ${values.only}; allowed: ${Object.keys(projects).join(', ')}`);
  }
  const demo = await openDemo({ url: values['api-url'], key: values['api-key'] });
  for (const [name, make] of Object.entries(projects)) {
    if (values.only === undefined || values.only === name) await make(demo, { branches });
  }
  demo.say(`done: ${demo.url}/ shows it`);
}
