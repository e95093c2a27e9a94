/** Who asks: the credentials that a request has, mostly right ones, so that what is behind them is reached. */
import { basic, keyHeaders } from '../../helpers/auth-provider.ts';
import type { Random } from '../random.ts';
import type { Operation } from './operations.ts';

type Headers = Readonly<Record<string, string>>;

export interface Callers {
  readonly token: string;
  readonly strangerToken: string;
  /** Of a project of the embedded auth provider: its keys, and a person who is signed in. */
  stack: StackKeys | null;
}

export interface StackKeys {
  readonly projectId: string;
  readonly admin: Headers;
  readonly server: Headers;
  readonly client: Headers;
  readonly accessToken: string;
  readonly refreshToken: string;
}

export function headersFor(callers: Callers, { path }: Operation, random: Random): Record<string, string> {
  if (path.startsWith('/stack')) return stackHeaders(callers, path, random);
  if (!path.startsWith('/api/v2')) return {};
  const chosen = random.below(50);
  if (chosen === 0) return {};
  return { authorization: `Bearer ${chosen === 1 ? callers.strangerToken : callers.token}` };
}

function stackHeaders({ stack }: Callers, path: string, random: Random): Record<string, string> {
  if (path.includes('/provision') || path.includes('/transfer')) return { ...basic };
  if (stack === null) return {};
  const access = random.pick([stack.admin, stack.admin, stack.server, stack.client]);
  const person = random.chance(0.6)
    ? { 'x-stack-access-token': stack.accessToken, 'x-stack-refresh-token': stack.refreshToken }
    : {};
  return { ...access, ...person };
}

type Post = (path: string, headers: Headers, body: object) => Promise<Record<string, unknown>>;

/** A new project of the provider with all kinds of keys, and one user. */
export async function makeStackKeys(post: Post, random: Random): Promise<StackKeys> {
  const made = await post('/integrations/neon/projects/provision', basic, { display_name: 'fuzz' });
  const projectId = String(made.project_id);
  const admin = keyHeaders('admin', projectId, String(made.super_secret_admin_key));
  const keys = await post('/integrations/neon/api-keys', admin, {
    description: 'fuzz',
    expires_at_millis: Date.now() + 86_400_000,
    has_publishable_client_key: true,
    has_secret_server_key: true,
    has_super_secret_admin_key: false,
  });
  const client = keyHeaders('client', projectId, String(keys.publishable_client_key));
  const person = { email: `n${random.below(2 ** 32)}@example.com`, password: 'correct horse battery' };
  const tokens = await post('/auth/password/sign-up', client, person);
  return {
    projectId,
    admin,
    client,
    server: keyHeaders('server', projectId, String(keys.secret_server_key)),
    accessToken: String(tokens.access_token),
    refreshToken: String(tokens.refresh_token),
  };
}
