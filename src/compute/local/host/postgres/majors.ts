/** Binaries and template of each major: made once, and shared by all callers that ask for them while they are made. */
import type { Config } from '../../../../lib/config.ts';
import type { Layout } from '../home/layout.ts';
import { type Build, ensureBuild } from './builds.ts';
import { ensureTemplate, type Template } from './template.ts';

export interface Major {
  readonly build: Build;
  readonly template: Template;
}

export class Majors {
  readonly #config: Pick<Config, 'pgBin' | 'uids'>;
  readonly #layout: Layout;
  readonly #made = new Map<number, Promise<Major>>();

  constructor(config: Pick<Config, 'pgBin' | 'uids'>, layout: Layout) {
    this.#config = config;
    this.#layout = layout;
  }

  /** A failed attempt is not cached. */
  ready(pgVersion: number, progress: (line: string) => void = () => undefined): Promise<Major> {
    const known = this.#made.get(pgVersion);
    if (known) return known;
    const making = this.#make(pgVersion, progress);
    this.#made.set(pgVersion, making);
    making.catch(() => this.#made.delete(pgVersion));
    return making;
  }

  async #make(pgVersion: number, progress: (line: string) => void): Promise<Major> {
    const build = await ensureBuild(pgVersion, this.#config, this.#layout, progress);
    return { build, template: await ensureTemplate(build, this.#layout, this.#config.uids !== null, progress) };
  }
}
