/** A caller that sends each request with a key until it has an answer: what is asked for once is made once. */
import { randomUUID } from 'node:crypto';
import { thinkTime } from '../../helpers/eventually.ts';
import type { World } from '../chaos/world.ts';

const betweenMs = 300;
/** More would only make the catalogue longer. */
const rolesMax = 20;
const waitingMax = 3;

export class KeyedLoad {
  made = 0;
  readonly #world: World;
  readonly #stop = new AbortController();
  readonly #done: Promise<void>;

  constructor(world: World) {
    this.#world = world;
    this.#done = this.#work();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#done;
  }

  async #work(): Promise<void> {
    const [tenant] = this.#world.tenants;
    if (tenant === undefined) throw new Error('there is no tenant');
    const path = `/projects/${tenant.projectId}/branches/${tenant.branchId}/roles`;
    for (let number = 0; !this.#stop.signal.aborted; number++) {
      await this.#send('POST', path, { role: { name: `keyed${number}` } });
      this.made++;
      if (number >= rolesMax) await this.#send('DELETE', `${path}/keyed${number - rolesMax}`);
      await thinkTime(betweenMs);
      await this.#untilShort(`/projects/${tenant.projectId}/operations?limit=20`);
    }
  }

  /** On a slow machine the queue would grow for as long as the run lasts, and outlast the patience at its end. */
  async #untilShort(path: string): Promise<void> {
    while (!this.#stop.signal.aborted) {
      const reply = await this.#world.call('GET', path);
      const listed = (reply?.body?.operations ?? []) as readonly { readonly status: string }[];
      const waiting = listed.filter(({ status }) => ['scheduling', 'running', 'failed'].includes(status));
      if (reply?.status === 200 && waiting.length <= waitingMax) return;
      await thinkTime(betweenMs);
    }
  }

  async #send(method: string, path: string, body?: object): Promise<void> {
    const headers = { 'idempotency-key': randomUUID() };
    while (!this.#stop.signal.aborted) {
      const reply = await this.#world.call(method, path, body, headers);
      if (reply !== null && [200, 201].includes(reply.status)) return;
      // A project that something else is done to answers 423, and asks to come again.
      if (reply !== null && reply.status !== 423) {
        this.#world.violations.push(`${method} ${path} answered ${reply.status}: ${JSON.stringify(reply.body)}`);
        return;
      }
      await thinkTime(betweenMs);
    }
  }
}
