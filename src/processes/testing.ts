/** `catnap/testing`, for the tests of applications: reads the settings and hands them over. */
import { type FreshBranch, type FreshBranchOptions, makeFreshBranch } from '../cli/testing/fresh-branch.ts';
import { localUrl, readConfig } from '../lib/config.ts';

export type { FreshBranch, FreshBranchOptions };

export function freshBranch(options: FreshBranchOptions = {}): Promise<FreshBranch> {
  const config = readConfig();
  const around = { url: localUrl(config), home: config.home, folder: process.cwd(), apiKey: config.apiKey };
  return makeFreshBranch(around, options);
}
