/** `catnap/testing`: what tests of applications import. In a checkout it needs a build. */
export { freshBranch, stockBranches } from '../dist/testing/processes/testing.js';
