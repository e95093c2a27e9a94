/**
 * What a compute is held to while the machine has no room left. `read_only`: its transactions are read-only by default.
 * `held`: sessions have lifted that and gone on writing, so it is suspended, and nothing starts it until there is room.
 */
import type { DiskGuard, EndpointRow } from '../db/endpoints.ts';
import { CatnapError } from '../lib/errors.ts';

export type { DiskGuard };

export const heldMessage =
  'the disk of the machine is full, and this compute went on writing: it stays suspended until there is room. Its ' +
  'branch and its project can be deleted over the API; deleted ones take room until they are purged';

type Guarded = Pick<EndpointRow, 'diskGuard'>;

export const isHeld = ({ diskGuard }: Guarded) => diskGuard === 'held';

/** Called wherever something would start a compute. */
export function requireNotHeld(endpoint: Guarded): void {
  if (isHeld(endpoint)) throw new CatnapError('disk_full', heldMessage);
}
