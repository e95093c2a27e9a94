/** The refusals of the double, in the words of the server that was recorded. */
import type { StatusCause } from '../../../src/compute/kubernetes/client/api-error.ts';
import type { Resource } from '../../../src/compute/kubernetes/client/objects.ts';

export interface Failure {
  readonly code: number;
  readonly body: unknown;
}

export class ApiFailure extends Error {
  readonly failure: Failure;

  constructor(given: Failure) {
    super(JSON.stringify(given));
    this.failure = given;
  }
}

export const qualified = ({ plural, group }: Resource) => (group === '' ? plural : `${plural}.${group}`);
export const qualifiedKind = ({ kind, group }: Resource) => (group === '' ? kind : `${kind}.${group}`);

export function failure(code: number, reason: string | undefined, message: string, causes?: StatusCause[]): Failure {
  const details = causes && { causes };
  const body = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message, reason, details, code };
  return { code, body };
}

export const notFound = (resource: Resource, name: string) =>
  failure(404, 'NotFound', `${qualified(resource)} "${name}" not found`);

export const conflict = (resource: Resource, name: string) =>
  failure(
    409,
    'Conflict',
    `Operation cannot be fulfilled on ${qualified(resource)} "${name}": the object has been modified; please apply your changes to the latest version and try again`,
  );

export function invalid(resource: Resource, name: string, field: string, message: string, byWebhook = ''): Failure {
  const denied = byWebhook === '' ? '' : `admission webhook "${byWebhook}" denied the request: `;
  const text = `${denied}${qualifiedKind(resource)} "${name}" is invalid: ${field}: ${message}`;
  return failure(422, 'Invalid', text, [{ reason: 'FieldValueInvalid', message, field }]);
}

/** What every write of the operator's kinds gets while the operator does not answer. */
export function webhookDown({ kind }: Resource): Failure {
  const word = kind.toLowerCase();
  const service = 'https://cnpg-webhook-service.cnpg-system.svc:443';
  const post = `Post "${service}/mutate-postgresql-cnpg-io-v1-${word}?timeout=10s"`;
  const why = `${post}: dial tcp 10.0.0.35:443: connect: connection refused`;
  const message = `Internal error occurred: failed calling webhook "m${word}.cnpg.io": failed to call webhook: ${why}`;
  return failure(500, 'InternalError', message, [{ message: message.replace('Internal error occurred: ', '') }]);
}
