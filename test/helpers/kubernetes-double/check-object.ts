/**
 * What the double's server says about an object that is wrong: the schemas of the definitions as closed objects, and
 * those rules of the operator's webhook that Catnap could break. Checked as a whole, after a patch is applied.
 */
import { readFileSync } from 'node:fs';
import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import type { KubernetesObject, Resource } from '../../../src/compute/kubernetes/client/objects.ts';
import { apiVersionOf } from '../../../src/compute/kubernetes/client/objects.ts';
import { bytesIn } from '../../../src/compute/kubernetes/manifests/sizes.ts';
import type { Cluster } from '../../../src/compute/kubernetes/objects/kinds.ts';
import { ApiFailure, failure, invalid } from './api-failure.ts';
import { fixedParameters, operatorsDefaults } from './operator-parameters.ts';

interface KindSchemas {
  readonly spec: object;
  readonly status: object;
}

const schemasFile = new URL('../../../src/compute/kubernetes/objects/schemas.json', import.meta.url);
const { kinds } = JSON.parse(readFileSync(schemasFile, 'utf8')) as { kinds: Record<string, KindSchemas> };

const closed = (properties: object, required: readonly string[] = []) => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
});
const texts = { type: 'object', additionalProperties: { type: 'string' } };
/** What a client may send; the server adds the rest. */
const metadata = {
  type: 'object',
  required: ['name'],
  properties: {
    name: { type: 'string', pattern: '^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$' },
    labels: {
      type: 'object',
      additionalProperties: { type: 'string', pattern: '^([A-Za-z0-9]([-\\w.]{0,61}[A-Za-z0-9])?)?$' },
    },
    annotations: texts,
  },
};
const head = { apiVersion: { type: 'string' }, kind: { type: 'string' }, metadata };
const ajv = new Ajv({ strict: false, validateFormats: false, allErrors: true });

const checks: Readonly<Record<string, ValidateFunction>> = {
  Secret: ajv.compile(closed({ ...head, type: { type: 'string' }, data: texts, stringData: texts })),
  ...Object.fromEntries(
    Object.entries(kinds).map(([kind, { spec, status }]) => [
      kind,
      ajv.compile(closed({ ...head, spec, status }, ['spec'])),
    ]),
  ),
};

/** A field that the schema does not know is told only when asked to; that is what `fieldValidation=Strict` asks. */
export function checkObject(
  resource: Resource,
  object: KubernetesObject,
  strictly: 'create' | 'patch' | null,
  before?: KubernetesObject,
): void {
  const { name } = object.metadata;
  if (object.apiVersion !== apiVersionOf(resource)) {
    const given = `${object.apiVersion}, Kind=${object.kind}`;
    const message = `the API version in the data (${given}) does not match the expected API version (${apiVersionOf(resource)})`;
    throw new ApiFailure(failure(400, 'BadRequest', message));
  }
  const check = checks[resource.kind];
  if (check === undefined) throw new Error(`the double has no schema of ${resource.kind}`);
  check(object);
  const errors = check.errors ?? [];
  const unknown = errors.filter(({ keyword }) => keyword === 'additionalProperties');
  if (strictly !== null && unknown[0] !== undefined) throw new ApiFailure(unknownField(resource, unknown[0], strictly));
  const [wrong] = errors.filter(({ keyword }) => keyword !== 'additionalProperties');
  if (wrong !== undefined) {
    const field = wrong.instancePath.slice(1).replaceAll('/', '.');
    throw new ApiFailure(invalid(resource, name, field, inServersWords(object, wrong, field)));
  }
  if (resource.kind === 'Cluster') checkByWebhook(resource, object as Cluster, before as Cluster | undefined);
}

function unknownField(resource: Resource, error: ErrorObject, strictly: 'create' | 'patch') {
  const field = [...error.instancePath.split('/').slice(1), error.params.additionalProperty].join('.');
  const decoding = `strict decoding error: unknown field "${field}"`;
  if (strictly === 'patch') return failure(422, 'Invalid', ` "" is invalid: patch: Invalid value: ${decoding}`);
  const { kind, version } = resource;
  return failure(400, 'BadRequest', `${kind} in version "${version}" cannot be handled as a ${kind}: ${decoding}`);
}

function inServersWords(object: KubernetesObject, error: ErrorObject, field: string): string {
  const value = field.split('.').reduce<unknown>((part, key) => (part as Record<string, unknown>)[key], object);
  if (error.keyword === 'enum') {
    const supported = error.params.allowedValues.map((one: string) => JSON.stringify(one)).join(', ');
    return `Unsupported value: ${JSON.stringify(value)}: supported values: ${supported}`;
  }
  if (error.keyword !== 'minimum') return `Invalid value: ${JSON.stringify(value)}: ${error.message}`;
  return `Invalid value: ${value}: ${field} in body should be greater than or equal to ${error.params.limit}`;
}

function checkByWebhook(resource: Resource, { metadata: { name }, spec }: Cluster, before: Cluster | undefined): void {
  const deny = (field: string, message: string, of = resource) => {
    throw new ApiFailure(invalid(of, name, field, message, 'vcluster.cnpg.io'));
  };
  const size = spec.storage?.size ?? '';
  if (size === '') {
    deny(
      'spec.storage.size',
      'Invalid value: "": Size not configured. Please add it, or a storage request in the pvcTemplate.',
    );
  }
  if (!/^\d+(\.\d+)?([KMGT]i?|k)?$/.test(size))
    deny('spec.storage.size', `Invalid value: "${size}": Size value isn't valid`);
  const sizeBefore = before?.spec.storage?.size;
  if (sizeBefore !== undefined && bytesIn(size) < bytesIn(sizeBefore)) {
    const message = `Invalid value: "${size}": can't shrink existing storage from ${sizeBefore} to ${size}`;
    deny('spec.storage', message, { ...resource, group: 'cluster.cnpg.io' });
  }
  const image = spec.imageName ?? '';
  if (!/:\d+(\.\d+)?([-.].*)?$/.test(image)) deny('spec.imageName', `Invalid value: "${image}": invalid version tag`);
  for (const [parameter, value] of Object.entries(spec.postgresql?.parameters ?? {})) {
    if (!fixedParameters.has(parameter) || operatorsDefaults[parameter] === value) continue;
    deny(
      `spec.postgresql.parameters.${parameter}`,
      `Invalid value: "${value}": Can't set fixed configuration parameter`,
    );
  }
  const { replica, bootstrap, externalClusters = [] } = spec;
  const sources = {
    'spec.replicaCluster.primaryServerName': replica?.source,
    'spec.bootstrap.recovery.source': bootstrap?.recovery?.source,
  };
  for (const [field, source] of Object.entries(sources)) {
    if (source === undefined || externalClusters.some((external) => external.name === source)) continue;
    deny(field, `Invalid value: "${source}": External cluster ${source} not found`);
  }
  const {
    shared_buffers: buffers,
    min_wal_size: least = '80MB',
    max_wal_size: most = '1GB',
  } = spec.postgresql?.parameters ?? {};
  const requested = String(spec.resources?.requests?.memory ?? '0');
  if (buffers !== undefined && requested !== '0' && megabytesIn(buffers) * 1024 ** 2 > bytesIn(requested)) {
    const message = 'Memory request is lower than PostgreSQL `shared_buffers` value';
    deny('spec.resources.requests', `Invalid value: "${requested}": ${message}`);
  }
  if (megabytesIn(least) >= megabytesIn(most)) {
    const should = 'Parameter min_wal_size (default 80MB) should be smaller than parameter max_wal_size (default 1GB)';
    deny('spec.postgresql.parameters.min_wal_size', `Invalid value: "${least}": Invalid vale. ${should}`);
  }
  if (name.length > 50) {
    deny('metadata.name', `Invalid value: "${name}": the maximum length of a cluster name is 50 characters`);
  }
}

/** In the operator's own way of reading: no unit means megabytes. */
const megabytesIn = (size: string) => {
  const [, digits, unit = 'M'] = /^([\d.]+) *([kMGT]?)B?$/.exec(size) ?? [];
  return Number(digits) * 1024 ** ('kMGT'.indexOf(unit) - 1);
};
