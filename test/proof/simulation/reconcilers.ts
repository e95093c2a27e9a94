/** The reconcilers that take part in schedules. */
import { deletedThings } from '../../../src/reconcilers/deleted-things.ts';
import { idleComputes } from '../../../src/reconcilers/idle-computes.ts';
import { lostComputes } from '../../../src/reconcilers/lost-computes.ts';
import type { Reconciler } from '../../../src/reconcilers/reconciler.ts';
import { strayComputes } from '../../../src/reconcilers/stray-computes.ts';

export const reconcilers: Readonly<Record<string, Reconciler>> = {
  'lost-computes': lostComputes,
  'stray-computes': strayComputes,
  'deleted-things': deletedThings,
  'idle-computes': idleComputes,
};

/** Those that put right what is wrong; the other one puts computes to sleep that are not. */
export const resting = ['lost-computes', 'stray-computes', 'deleted-things'];
