/** The project `members`: an integration of the auth provider with 60 users and two trusted domains. */

const people = 60;
const firstNames = ['Ada', 'Grace', 'Edsger', 'Barbara', 'Donald', 'Radia', 'Alan', 'Frances', 'John', 'Margaret'];
const domains = ['https://app.example.com', 'https://staging.example.com'];

export async function makeMembers(demo) {
  const { id, main } = await demo.project('members');
  const provider = { auth_provider: 'stack', project_id: id };
  const { data: integrations } = await demo.api('GET', `/projects/${id}/auth/integrations`);
  if (integrations.length === 0) {
    await demo.api('POST', '/projects/auth/create', { ...provider, branch_id: main.id });
    await demo.settle(id);
  }
  const { domains: trusted } = await demo.api('GET', `/projects/${id}/auth/domains`);
  for (const domain of domains.filter((one) => !trusted.some((known) => known.domain === one))) {
    await demo.api('POST', `/projects/${id}/auth/domains`, { auth_provider: 'stack', domain });
  }
  const rows = await demo.sql(
    await demo.uriOf(id, main.id),
    'select email from neon_auth.users_sync where deleted_at is null',
  );
  const there = new Set(rows.map(({ email }) => email));
  const missing = Array.from({ length: people }, (_, n) => n + 1).filter((n) => !there.has(emailOf(n)));
  if (missing.length > 0) demo.say(`members: ${missing.length} users`);
  for (const n of missing) {
    const name = `${firstNames[n % firstNames.length]} ${String.fromCharCode(65 + (n % 26))}.`;
    await demo.api('POST', '/projects/auth/user', { ...provider, email: emailOf(n), name });
  }
}

const emailOf = (n) => `${firstNames[n % firstNames.length].toLowerCase()}.${n}@example.com`;
