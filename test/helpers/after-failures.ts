/** Run by vitest before each file of tests. */
import { describeAfterFailures } from './running-programs.ts';

describeAfterFailures();
