/** What `catnap kubernetes manifests` prints, from the options of the command. */
import { installationManifests, renderManifests } from './installation.ts';
import { findWrongOption, type InstallationOptions, usualOptions } from './options.ts';

type Given = Pick<InstallationOptions, 'image' | 'host' | 'domain' | 'postgresImages'> & Partial<InstallationOptions>;

export function render(given: Given) {
  const options: InstallationOptions = { ...usualOptions, ...given };
  const wrong = findWrongOption(options);
  return { wrong, text: wrong === null ? renderManifests(installationManifests(options)) : '' };
}
