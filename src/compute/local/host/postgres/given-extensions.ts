/** The extensions of binaries that the operator has given, which are used as they are: their own trust counts. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { ExtensionFacts } from '../../../../lib/model.ts';
import type { Build } from './builds.ts';
import { controlValue, findExtensions } from './machine-extensions.ts';

const untrusted = 'its control file does not mark it as trusted, and given binaries are used as they are';

export async function givenExtensions({ bin, major }: Pick<Build, 'bin' | 'major'>): Promise<ExtensionFacts> {
  const shares = ['../share/postgresql', '../share', `../../../../share/postgresql/${major}`];
  const scripts = shares.map((share) => join(bin, share, 'extension')).find((path) => existsSync(path));
  if (scripts === undefined) {
    return {
      extensions: [],
      note: `the extensions of the Postgres in ${bin} were not found; pg_available_extensions has them`,
    };
  }
  const found = await findExtensions([{ scripts, libraries: scripts }]);
  const extensions = found.map(({ name, version, comment, control, needsNoSuperuser }) => {
    const isOffered = needsNoSuperuser || /^(true|on|yes|1)$/i.test(controlValue(control, 'trusted') ?? '');
    return { name, version, comment, origin: scripts, isOffered, reason: isOffered ? null : untrusted };
  });
  return { extensions, note: null };
}
