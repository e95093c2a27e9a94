/**
 * The client for a Stack-compatible auth provider, the embedded one or any deployment: what its integration endpoints
 * offer to a control plane. `provision` is the one call that cannot be repeated at an external provider.
 */
import { isProviderFailure, isUserGone } from './errors.ts';
import { bothFamilies, itemsOf, type Json, requestProvider, textOf } from './http.ts';

export interface ProviderAccess {
  readonly baseUrl: string;
  readonly clientId: string;
  readonly clientSecret: string;
}

export interface SdkKeys {
  readonly publishableClientKey: string;
  readonly secretServerKey: string;
}

export interface OauthProvider {
  readonly id: string;
  readonly type: string;
  readonly clientId: string | null;
  readonly clientSecret: string | null;
}

export interface OauthCredentials {
  readonly clientId?: string | undefined;
  readonly clientSecret?: string | undefined;
  readonly microsoftTenantId?: string | undefined;
}

/** A user as the provider returns it to servers; only the fields that are read here have a type. */
export interface ProviderUser {
  readonly id: string;
  readonly [field: string]: unknown;
}

const integration = '/integrations/neon';
/** Keys are rotated by making new ones, so they do not expire by themselves. */
const keyLifeMs = 100 * 365 * 24 * 3_600_000;
const usersPerPage = 200;

export class ProviderClient {
  readonly #access: ProviderAccess;

  constructor(access: ProviderAccess) {
    this.#access = access;
  }

  /**
   * Makes a project. The attempt is for the embedded provider, which replaces what an earlier run of the same attempt
   * left; others ignore it.
   */
  async provision(displayName: string, attempt: string): Promise<{ projectId: string; adminKey: string }> {
    const reply = await this.#ask(
      'POST',
      `${integration}/projects/provision`,
      { display_name: displayName },
      {
        'idempotency-key': attempt,
      },
    );
    return { projectId: textOf(reply, 'project_id'), adminKey: textOf(reply, 'super_secret_admin_key') };
  }

  async startTransfer(projectId: string): Promise<string> {
    const body = { project_id: projectId };
    return textOf(await this.#ask('POST', `${integration}/projects/transfer`, body), 'confirmation_url');
  }

  /** False after the project has been transferred to a person, which can happen only once. */
  async isTransferable(projectId: string): Promise<boolean> {
    try {
      await this.#ask('GET', `${integration}/projects/transfer?project_id=${encodeURIComponent(projectId)}`);
      return true;
    } catch (error) {
      if (isProviderFailure(error, 'refused', 'missing')) return false;
      throw error;
    }
  }

  /** `signal` aborts its calls. */
  project(projectId: string, adminKey: string, signal?: AbortSignal): ProviderProject {
    return new ProviderProject(this.#access, projectId, adminKey, signal);
  }

  #ask(method: 'GET' | 'POST', path: string, body?: object, extra: Readonly<Record<string, string>> = {}) {
    const headers = { ...basic(this.#access), ...extra };
    return requestProvider(this.#access.baseUrl, { method, path, headers, ...(body === undefined ? {} : { body }) });
  }
}

/** One project at the provider, reached with its admin key. */
export class ProviderProject {
  readonly #access: ProviderAccess;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #signal: AbortSignal | undefined;

  constructor(access: ProviderAccess, projectId: string, adminKey: string, signal?: AbortSignal) {
    this.#access = access;
    this.#signal = signal;
    this.#headers = bothFamilies({
      'access-type': 'admin',
      'project-id': projectId,
      'super-secret-admin-key': adminKey,
    });
  }

  /** Fails with `locked_out` when the project or the key is gone. */
  async check(): Promise<void> {
    await this.#ask('GET', `${integration}/projects/current`);
  }

  /** There is no integration endpoint for this. A project that is already gone counts as removed. */
  async remove(): Promise<void> {
    await this.#ask('DELETE', '/internal/projects/current').catch((error) => {
      if (!isProviderFailure(error, 'locked_out', 'missing')) throw error;
    });
  }

  async createKeys(description: string): Promise<SdkKeys> {
    const reply = await this.#ask('POST', `${integration}/api-keys`, {
      description,
      expires_at_millis: Date.now() + keyLifeMs,
      has_publishable_client_key: true,
      has_secret_server_key: true,
      has_super_secret_admin_key: false,
    });
    return {
      publishableClientKey: textOf(reply, 'publishable_client_key'),
      secretServerKey: textOf(reply, 'secret_server_key'),
    };
  }

  /** For a step that runs again: keys that never reached their caller must not stay valid. */
  async revokeKeys(description: string): Promise<void> {
    const sets = itemsOf(await this.#ask('GET', `${integration}/api-keys`));
    const open = sets.filter((set) => set.description === description && set.manually_revoked_at_millis == null);
    for (const set of open) {
      const path = `${integration}/api-keys/${encodeURIComponent(textOf(set, 'id'))}`;
      await this.#ask('PATCH', path, { revoked: true });
    }
  }

  /** Returns the secret that signs its webhooks. */
  async addWebhook(url: string): Promise<string> {
    const path = `${integration}/webhooks`;
    const headers = { ...this.#headers, ...basic(this.#access) };
    const body = { url, description: 'Catnap follows the users of this project' };
    const reply = await requestProvider(this.#access.baseUrl, { method: 'POST', path, headers, body });
    return textOf(reply, 'secret');
  }

  async createUser(user: { readonly email: string; readonly name: string | null }): Promise<string> {
    const reply = await this.#ask('POST', '/users', {
      primary_email: user.email,
      // Two users cannot sign in with one address, which distinguishes a repeated request from a second user.
      primary_email_auth_enabled: true,
      ...(user.name === null ? {} : { display_name: user.name }),
    });
    return textOf(reply, 'id');
  }

  /** Null when the provider reports that there is no such user; any other 404 says nothing about users. */
  async findUser(userId: string): Promise<ProviderUser | null> {
    try {
      return toUser(await this.#ask('GET', `/users/${encodeURIComponent(userId)}`));
    } catch (error) {
      if (isUserGone(error)) return null;
      throw error;
    }
  }

  async deleteUser(userId: string): Promise<void> {
    await this.#ask('DELETE', `/users/${encodeURIComponent(userId)}`);
  }

  /** All users, page by page. */
  async *users(): AsyncGenerator<readonly ProviderUser[]> {
    let cursor: string | null = null;
    do {
      const from: string = cursor === null ? '' : `&cursor=${encodeURIComponent(cursor)}`;
      const all = 'include_anonymous=true&include_restricted=true';
      const page: Json = await this.#ask('GET', `/users?limit=${usersPerPage}&${all}${from}`);
      yield itemsOf(page).map(toUser);
      cursor = nextCursor(page);
    } while (cursor !== null);
  }

  async domains(): Promise<string[]> {
    return itemsOf(await this.#ask('GET', `${integration}/domains`)).map((item) => textOf(item, 'domain'));
  }

  async addDomain(domain: string): Promise<void> {
    await this.#ask('POST', `${integration}/domains`, { domain });
  }

  async removeDomain(domain: string): Promise<void> {
    await this.#ask('DELETE', `${integration}/domains/${encodeURIComponent(domain)}`);
  }

  async oauthProviders(): Promise<OauthProvider[]> {
    return itemsOf(await this.#ask('GET', `${integration}/oauth-providers`)).map(toOauthProvider);
  }

  async addOauthProvider(id: string, given: OauthCredentials): Promise<OauthProvider> {
    const body = { id, ...credentials(given) };
    return toOauthProvider(await this.#ask('POST', `${integration}/oauth-providers`, body));
  }

  async updateOauthProvider(id: string, given: OauthCredentials): Promise<OauthProvider> {
    const path = `${integration}/oauth-providers/${encodeURIComponent(id)}`;
    return toOauthProvider(await this.#ask('PATCH', path, credentials(given)));
  }

  async removeOauthProvider(id: string): Promise<void> {
    await this.#ask('DELETE', `${integration}/oauth-providers/${encodeURIComponent(id)}`);
  }

  #ask(method: 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string, body?: object) {
    const signal = this.#signal === undefined ? {} : { signal: this.#signal };
    const request = { method, path, headers: this.#headers, ...(body === undefined ? {} : { body }), ...signal };
    return requestProvider(this.#access.baseUrl, request);
  }
}

function basic({ clientId, clientSecret }: ProviderAccess): Record<string, string> {
  return { authorization: `Basic ${Buffer.from(`${clientId}:${clientSecret}`).toString('base64')}` };
}

function toUser(item: Json): ProviderUser {
  return { ...item, id: textOf(item, 'id') };
}

function toOauthProvider(item: Json): OauthProvider {
  const optional = (field: string) => (typeof item[field] === 'string' ? String(item[field]) : null);
  return {
    id: textOf(item, 'id'),
    type: optional('type') ?? 'shared',
    clientId: optional('client_id'),
    clientSecret: optional('client_secret'),
  };
}

/** A provider with its own client id is a standard one; without, it uses the auth provider's shared one. */
function credentials({ clientId, clientSecret, microsoftTenantId }: OauthCredentials): object {
  return {
    ...(clientId === undefined ? {} : { type: 'standard', client_id: clientId }),
    ...(clientSecret === undefined ? {} : { client_secret: clientSecret }),
    ...(microsoftTenantId === undefined ? {} : { microsoft_tenant_id: microsoftTenantId }),
  };
}

function nextCursor(page: Json): string | null {
  const { pagination } = page;
  const next = typeof pagination === 'object' && pagination !== null && 'next_cursor' in pagination;
  return next && typeof pagination.next_cursor === 'string' ? pagination.next_cursor : null;
}
