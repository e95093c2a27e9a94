/** A project with an auth integration in the whole program, and what its application does with it. */
import { expect } from 'vitest';
import { keyHeaders } from './auth-provider.ts';
import type { Program } from './program.ts';
import { ask } from './query.ts';

interface Keys {
  readonly auth_provider_project_id: string;
  readonly pub_client_key: string;
  readonly base_url: string;
}

export class AuthApp {
  readonly program: Program;
  readonly projectId: string;
  readonly branchId: string;
  readonly endpointId: string;
  readonly uri: string;
  keys: Keys = { auth_provider_project_id: '', pub_client_key: '', base_url: '' };

  // biome-ignore lint/suspicious/noExplicitAny: the reply to the creation of a project, which the contract has checked.
  private constructor(program: Program, made: any) {
    this.program = program;
    this.projectId = made.project.id;
    this.branchId = made.branch.id;
    this.endpointId = made.endpoints[0].id;
    this.uri = made.connection_uris[0].connection_uri;
  }

  static async create(program: Program, name: string): Promise<AuthApp> {
    const app = await AuthApp.createWithout(program, name);
    const order = { auth_provider: 'stack', project_id: app.projectId, branch_id: app.branchId };
    const reply = await program.api('POST', '/projects/auth/create', order);
    expect(reply.status).toBe(201);
    app.keys = reply.body;
    return app;
  }

  /** The project alone, whose integration is still to be made. */
  static async createWithout(program: Program, name: string): Promise<AuthApp> {
    const { body } = await program.api('POST', '/projects', { project: { name } });
    await program.settle(body.project.id);
    return new AuthApp(program, body);
  }

  get path(): string {
    return `/projects/${this.projectId}`;
  }

  /** Over the management API. */
  async createUser(email: string): Promise<void> {
    const order = { auth_provider: 'stack', project_id: this.projectId, email };
    expect((await this.program.api('POST', '/projects/auth/user', order)).status).toBe(201);
  }

  /** As a browser does, with the key that everybody may know. */
  signUp(email: string, verificationUrl?: string): Promise<Response> {
    const { base_url, auth_provider_project_id, pub_client_key } = this.keys;
    return fetch(`${base_url}/api/v1/auth/password/sign-up`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...keyHeaders('client', auth_provider_project_id, pub_client_key),
      },
      body: JSON.stringify({
        email,
        password: 'correct horse battery',
        ...(verificationUrl === undefined ? {} : { verification_callback_url: verificationUrl }),
      }),
    });
  }

  ask(text: string): Promise<string> {
    return ask(this.uri, text);
  }

  count(email: string): Promise<string> {
    return this.ask(`select count(*) from neon_auth.users_sync where email = '${email}'`);
  }

  async suspend(): Promise<void> {
    await this.program.api('POST', `${this.path}/endpoints/${this.endpointId}/suspend`);
    await this.program.settle(this.projectId);
  }

  async restoreFrom(branchId: string, keepAs?: string): Promise<void> {
    const body = { source_branch_id: branchId, ...(keepAs === undefined ? {} : { preserve_under_name: keepAs }) };
    const reply = await this.program.api('POST', `${this.path}/branches/${this.branchId}/restore`, body);
    expect(reply.status).toBe(200);
    await this.program.settle(this.projectId);
  }

  /** As the API shows it. */
  // biome-ignore lint/suspicious/noExplicitAny: tests read what they expect, and the contract is checked before.
  async integration(): Promise<any> {
    return (await this.program.api('GET', `${this.path}/auth/integrations`)).body.data[0];
  }
}

/** A number of `/metrics`. */
export async function readMetric(program: Program, name: string): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${program.httpPort}/metrics`)).text();
  return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]);
}
