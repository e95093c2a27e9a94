/** Binaries and template of each major: made once, and shared by all callers that ask for them while they are made. */
import type { Config } from '../../../../lib/config.ts';
import type { ExtensionFacts } from '../../../../lib/model.ts';
import type { Layout } from '../home/layout.ts';
import { type Build, currentRelease } from './builds.ts';
import { ensureServerBuild, mayBeExtended } from './extended-build.ts';
import { ensureTemplate, type Template } from './template.ts';

export interface Major {
  readonly build: Build;
  readonly template: Template;
  readonly listExtensions: () => Promise<ExtensionFacts>;
}

type MajorSettings = Pick<Config, 'pgBin' | 'uids' | 'extensions'>;

export class Majors {
  readonly #config: MajorSettings;
  readonly #layout: Layout;
  readonly #made = new Map<number, Promise<Major>>();

  constructor(config: MajorSettings, layout: Layout) {
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

  /** The name of the build that a server would now start from. It is made only where its name depends on that. */
  async release(pgVersion: number): Promise<string> {
    const { pgBin, extensions } = this.#config;
    const isExtended = pgBin[pgVersion] === undefined && (await mayBeExtended(pgVersion, extensions, this.#layout));
    if (isExtended) return (await this.ready(pgVersion)).build.name;
    return currentRelease(pgVersion, this.#config, this.#layout);
  }

  async #make(pgVersion: number, progress: (line: string) => void): Promise<Major> {
    const { build, listExtensions } = await ensureServerBuild(pgVersion, this.#config, this.#layout, progress);
    const template = await ensureTemplate(build, this.#layout, this.#config.uids !== null, progress);
    return { build, template, listExtensions };
  }
}
