/** The project `monorepo`: a branch for each of many pull requests, some of them branched again. */

const atOnce = 4;
const nestedEvery = 9;

export async function makeMonorepo(demo, { branches: wanted }) {
  const { id, main } = await demo.project('monorepo');
  const { storage_method: method } = await (await fetch(`${demo.url}/status.json`)).json();
  const there = await demo.branchesOf(id);
  const missing = wanted - there.length;
  if (missing <= 0) return;
  demo.say(`monorepo: ${missing} branches${method === 'copy' ? ', each a full copy of about 30 MB' : ''}`);
  const ids = new Map(there.map((branch) => [branch.name, branch.id]));
  const names = Array.from({ length: wanted - 1 }, (_, n) => `preview/pr-${2001 + n}`).filter((name) => !ids.has(name));
  for (let from = 0; from < names.length; from += atOnce) {
    await Promise.all(names.slice(from, from + atOnce).map((name) => make(name)));
    await demo.settle(id);
    if (from % (10 * atOnce) === 0) demo.say(`monorepo: ${ids.size} of ${wanted} branches`);
  }

  async function make(name) {
    const number = Number(name.split('-').at(-1));
    // Of one that was made in an earlier round, if there is one.
    const parent = number % nestedEvery === 0 ? ids.get(`preview/pr-${number - 2 * nestedEvery + 1}`) : undefined;
    const body = { branch: { name, parent_id: parent ?? main.id } };
    const { branch } = await demo.api('POST', `/projects/${id}/branches`, body);
    ids.set(name, branch.id);
  }
}
