/** What a driver may be unable to do where its computes run. It says so beforehand, and refuses the call itself. */
import { CatnapError } from '../../lib/errors.ts';

/**
 * - `history`: moments of the past. Without it every history is empty, and no moment is in it.
 * - `replicas`: read replicas.
 * - `frozen`: computes that serve data and let nobody change it.
 * - `empty_copies`: copies with the schema alone.
 * - `logs`: the log of a server.
 * - `room`: how much room there is for all data together. Without it `observeRoom` returns null.
 * - `last_state`: proof of what a server held at its end. Without it `suspend` returns null.
 * - `samples`: what a compute has used. Without it there are no samples.
 */
export type Ability = 'history' | 'replicas' | 'frozen' | 'empty_copies' | 'logs' | 'room' | 'last_state' | 'samples';

/** Why, in one sentence for people. */
export type Inabilities = Readonly<Partial<Record<Ability, string>>>;

/** Final: asking again does not help. */
export const notSupported = (why: string) => new CatnapError('not_supported', why);

export const isNotSupported = (error: unknown): error is CatnapError =>
  error instanceof CatnapError && error.kind === 'not_supported';
