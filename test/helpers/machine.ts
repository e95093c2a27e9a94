/** What the parent would have found out about the machine, for tests of the API alone. */
import type { ApiConfig } from '../../src/api/kit/parts.ts';
import type { Config } from '../../src/lib/config.ts';

export const machineOfTests: Omit<ApiConfig, keyof Config> = {
  temporaryDiskEnforcement: 'session',
  storageMethod: 'copy',
  limitsEnforced: true,
  networkProblem: null,
  outsideProblem: null,
  cannot: {},
  releases: { 17: '17.fake' },
};
