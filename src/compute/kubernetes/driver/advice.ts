/** What can be said of computes on Kubernetes without asking the cluster, by processes that have no way into it. */
import type { ExtensionFacts } from '../../../lib/model.ts';
import { notSupported } from '../../interface/abilities.ts';
import type { DriverAdvice } from '../../interface/driver.ts';
import { settingsProblem } from '../manifests/settings.ts';
import { inabilities } from './inabilities.ts';

/** `images` are those of Postgres, by major; `checkSettings` asks a Postgres of the same major that is at hand. */
export function adviceOn(
  images: Readonly<Record<number, string>>,
  checkSettings: DriverAdvice['checkSettings'],
): DriverAdvice {
  return {
    cannot: inabilities,
    checkSettings: async (major, given) => settingsProblem(given) ?? checkSettings(major, given),
    listExtensions: async (major) => extensionsOf(images[major]),
    readLog: async () => {
      throw notSupported(inabilities.logs);
    },
  };
}

/** Nothing here can look into an image. Owners may create what its control files mark as trusted. */
function extensionsOf(image: string | undefined): ExtensionFacts {
  const where = image === undefined ? 'an image of the cluster' : `the image ${image}`;
  return { extensions: [], note: `extensions come with ${where}; pg_available_extensions lists them in a database` };
}
