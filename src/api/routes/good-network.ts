/** Whether this machine can do what a project asks of its network; that is known to the parent process alone. */
import { CatnapError } from '../../lib/errors.ts';
import type { ApiConfig } from '../kit/parts.ts';

interface Asked {
  readonly allow_outbound_connections?: boolean;
}

/** What clients are shown they may send back. */
export function requireNetwork({ networkProblem, outsideProblem }: ApiConfig, asked: Asked | undefined): void {
  const field = 'invalid request: body.project.settings.allow_outbound_connections';
  if (asked?.allow_outbound_connections === false && networkProblem !== null) {
    throw new CatnapError(
      'unprocessable',
      `${field} must be true: computes here have the network of the machine (${networkProblem})`,
    );
  }
  if (asked?.allow_outbound_connections === true && outsideProblem !== null) {
    throw new CatnapError('unprocessable', `${field} must be false: ${outsideProblem}`);
  }
}
