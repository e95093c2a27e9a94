/** Everybody who may call the embedded auth provider and has nothing to do with the victim's project in it. */
import { keyHeaders, type ProvisionedProject, type TestAuthProvider } from '../../helpers/auth-provider.ts';

/** In whatever belongs to the victim's users. */
export const userMark = 'zq7user';
/** The name of the victim's project, which its publishable key shows. */
export const providerMark = 'zq7provider';

export interface ProviderSide {
  readonly project: ProvisionedProject;
  readonly user: { readonly access_token: string; readonly refresh_token: string; readonly user_id: string };
  readonly keySetId: string;
  readonly domain: string;
  readonly email: string;
}

export interface ProviderCaller {
  readonly name: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Refused everywhere; or somebody who is let in, to what is theirs, or to what the publishable key shows. */
  readonly standing: 'nobody' | 'elsewhere' | 'public';
}

export async function makeSide(provider: TestAuthProvider, name: string, mark: string): Promise<ProviderSide> {
  const project = await provider.provision(name);
  // No marks: others may use the address and the domain in a project of their own, where they would come back.
  const label = name === providerMark ? 'victims' : name;
  const email = `${label}-user@example.com`;
  const domain = `https://${label}-app.example.com`;
  const signedUp = await provider.call('POST', '/auth/password/sign-up', project.client, {
    email,
    password: `${mark} horse battery`,
  });
  const user = signedUp.body;
  await provider.call('PATCH', `/users/${user.user_id}`, project.server, { display_name: `${mark} display` });
  await provider.call('POST', '/integrations/neon/domains', project.admin, { domain });
  const sets = (await provider.call('GET', '/integrations/neon/api-keys', project.admin)).body.items;
  // The first look at a key set makes the keys of those users.
  for (const more of ['', '?include_restricted=true', '?include_anonymous=true']) {
    await provider.call('GET', `/projects/${project.id}/.well-known/jwks.json${more}`);
  }
  return { project, user, keySetId: sets[0].id, domain, email };
}

const families = ['stack', 'hexclave'];
const accesses = ['client', 'server', 'admin'] as const;

/** What is good somewhere is made anew for each of them, since some of it does not outlive its own sweep. */
export async function providerCallers(provider: TestAuthProvider, victim: ProviderSide): Promise<ProviderCaller[]> {
  const attacker = () => makeSide(provider, 'attacker', 'attacker');
  const wrong = (await attacker()).project;
  const nobody = (name: string, headers: Record<string, string>): ProviderCaller => ({
    name,
    headers,
    standing: 'nobody',
  });
  const keyOf = (access: string, { publishableKey, secretKey, adminKey }: ProvisionedProject) =>
    access === 'client' ? publishableKey : access === 'server' ? secretKey : adminKey;
  const { id } = victim.project;
  const callers: ProviderCaller[] = [
    nobody('no key', {}),
    nobody('the project’s id alone', { 'x-stack-project-id': id }),
    nobody('a wrong secret of the integration', {
      authorization: `Basic ${btoa('catnap:guessed')}`,
      'x-stack-project-id': id,
    }),
    nobody('a revoked key of the project', await revokedKey(provider, victim)),
  ];
  for (const family of families) {
    for (const access of accesses) {
      const headers = keyHeaders(access, id, keyOf(access, wrong), family);
      callers.push(nobody(`a ${access} key of another project (${family})`, headers));
      // Unless its project asks for one, a client needs no key: browsers could not keep it secret.
      const standing = access === 'client' ? 'public' : 'nobody';
      const without = keyHeaders(access, id, undefined, family);
      callers.push({ name: `no ${access} key (${family})`, headers: without, standing });
    }
    for (const access of ['server', 'admin'] as const) {
      const headers = keyHeaders(access, id, victim.project.publishableKey, family);
      callers.push(nobody(`the publishable key as a ${access} key (${family})`, headers));
    }
  }
  for (const access of accesses) {
    const { project } = await attacker();
    const headers = keyHeaders(access, project.id, keyOf(access, project));
    callers.push({ name: `${access} key of another project, in its own`, headers, standing: 'elsewhere' });
  }
  const { project, user } = await attacker();
  const tokens = { 'x-stack-access-token': user.access_token, 'x-stack-refresh-token': user.refresh_token };
  callers.push({
    name: 'a user of another project, in its own',
    headers: { ...project.client, ...tokens },
    standing: 'elsewhere',
  });
  callers.push({
    name: 'a user of another project, with the publishable key',
    headers: { ...victim.project.client, ...tokens },
    standing: 'public',
  });
  callers.push({ name: 'the publishable key', headers: victim.project.client, standing: 'public' });
  callers.push({
    name: 'a user who has signed out',
    headers: { ...victim.project.client, ...(await endedSession(provider, victim)) },
    standing: 'public',
  });
  return callers;
}

async function revokedKey(provider: TestAuthProvider, { project }: ProviderSide): Promise<Record<string, string>> {
  const made = await provider.call('POST', '/integrations/neon/api-keys', project.admin, {
    description: 'revoked',
    expires_at_millis: Date.now() + 86_400_000,
    has_publishable_client_key: false,
    has_secret_server_key: true,
    has_super_secret_admin_key: false,
  });
  await provider.call('PATCH', `/integrations/neon/api-keys/${made.body.id}`, project.admin, { revoked: true });
  return keyHeaders('server', project.id, made.body.secret_server_key);
}

async function endedSession(provider: TestAuthProvider, { project, email }: ProviderSide) {
  const body = { email, password: `${userMark} horse battery` };
  const tokens = (await provider.call('POST', '/auth/password/sign-in', project.client, body)).body;
  const headers = { 'x-stack-access-token': tokens.access_token, 'x-stack-refresh-token': tokens.refresh_token };
  await provider.call('DELETE', '/auth/sessions/current', { ...project.client, ...headers });
  return headers;
}
