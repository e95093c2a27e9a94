/**
 * The endpoint of a caller that names none. Some drivers pass on nothing but user, password, host and database of a
 * connection string, and where the host is that of the whole machine, none of these names an endpoint; here, unlike on
 * the database port, the password is known at once, and may stand for one. Where it stands for several (a branch has
 * the passwords of its parent) nobody can know which one was meant, and a guess would write into the wrong one.
 */
import { CatnapError } from '../../lib/errors.ts';
import { asRoute, endpointMissing, type Route } from '../client/route.ts';
import type { ControlPlane } from '../kit/control-plane.ts';
import type { SqlTarget } from './request.ts';

const endpointInAddress = "append '?endpoint=<endpoint-id>' to the address of /sql";

/** No endpoint was named, and the password stands for none. */
export class EndpointNotFound extends CatnapError {
  constructor() {
    super('invalid_request', `${endpointMissing} If your driver does not pass the options on, ${endpointInAddress}.`);
  }
}

export async function findUnnamedEndpoint({ role, credential }: SqlTarget, plane: ControlPlane): Promise<Route> {
  if (!('password' in credential) || plane.findByPassword === undefined) throw new EndpointNotFound();
  const [only, other] = await plane.findByPassword(role, credential.password.toString('utf8'));
  if (only === undefined) throw new EndpointNotFound();
  if (other === undefined) return asRoute(only);
  throw new CatnapError(
    'invalid_request',
    `Several branches have a role '${role}' with this password. To say which one is meant, ${endpointInAddress}.`,
  );
}
