/** The manifests of an installation: valid by Kubernetes' own schemas, closed; and what they must not allow. */
import { readFileSync } from 'node:fs';
import { Ajv } from 'ajv';
import { describe, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { readConfig } from '../../src/lib/config.ts';
import { installationManifests } from '../../src/machine/kubernetes/installation.ts';
import { labelsOf, type Manifest, pieces } from '../../src/machine/kubernetes/manifest.ts';
import { findWrongOption, usualOptions } from '../../src/machine/kubernetes/options.ts';
import { render } from '../../src/machine/kubernetes/render.ts';
import { workerRules } from '../../src/machine/kubernetes/rights.ts';

const fixture = new URL('../fixtures/kubernetes/schemas.json', import.meta.url);
const { kinds } = JSON.parse(readFileSync(fixture, 'utf8')) as { kinds: Record<string, object> };
const ajv = new Ajv({ strict: false, validateFormats: false, allErrors: true });
const checks = Object.fromEntries(Object.entries(kinds).map(([kind, schema]) => [kind, ajv.compile(schema)]));

const needed = {
  image: 'registry.example.com/catnap:1',
  host: 'catnap.example.com',
  domain: 'db.example.com',
  postgresImages: { 17: 'ghcr.io/cloudnative-pg/postgresql:17.6' },
};
const options = { ...usualOptions, ...needed };
const full = {
  ...options,
  ingressClass: 'nginx',
  storageClass: 'fast',
  snapshotClass: 'fast-snapshots',
  apiServer: '10.0.0.1/32',
};

function problemsOf(manifest: Manifest): string[] {
  const check = checks[manifest.kind];
  if (check === undefined) return [`there is no schema of ${manifest.kind}`];
  check(manifest);
  return (check.errors ?? []).map(({ instancePath, message, params }) => {
    return `${manifest.kind} ${manifest.metadata.name} ${instancePath} ${message} ${JSON.stringify(params)}`;
  });
}

// biome-ignore lint/suspicious/noExplicitAny: read here as the tests expect it, and checked by the schemas.
type Loose = any;
const of = (kind: string, manifests = installationManifests(full)): Loose[] =>
  manifests.filter((manifest) => manifest.kind === kind);

describe('the manifests', () => {
  test.each([
    ['with what is needed', options],
    ['with everything', full],
  ])('are valid, %s', (_, given) => {
    const manifests = installationManifests(given);
    expect(manifests.flatMap(problemsOf)).toEqual([]);
    const names = manifests.map(({ kind, metadata }) => `${kind} ${metadata.namespace} ${metadata.name}`);
    expect(new Set(names).size).toBe(names.length);
  });

  test('with a field that Kubernetes does not know are not', () => {
    const [first] = of('Deployment');
    const wrong = { ...first, spec: { ...first.spec, replica: 2 } };
    expect(problemsOf(wrong)).toEqual([expect.stringContaining('must NOT have additional properties')]);
  });

  test('are printed as one stream of YAML, with the usual values for what is left out', () => {
    const { wrong, text } = render({ ...needed, apis: 3 });
    expect(wrong).toBeNull();
    const printed = parseAllDocuments(text).map((document) => document.toJSON());
    expect(printed).toEqual(JSON.parse(JSON.stringify(installationManifests({ ...options, apis: 3 }))));
  });
});

describe('every pod', () => {
  const pods = of('Deployment').map(({ spec }) => spec.template);

  test('keeps to the restricted level of pod security', () => {
    expect(pods).toHaveLength(pieces.length);
    for (const { spec } of pods) {
      expect(spec.securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } });
      for (const { securityContext } of spec.containers) {
        expect(securityContext).toEqual({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        });
      }
      for (const volume of spec.volumes) expect(Object.keys(volume)).not.toContain('hostPath');
    }
    const [own] = of('Namespace');
    expect(own.metadata.labels).toEqual({ 'pod-security.kubernetes.io/enforce': 'restricted' });
  });

  test('gets settings that Catnap takes', () => {
    for (const { spec } of pods) {
      const [{ env }] = spec.containers;
      const values = env.filter(({ value }: { value?: string }) => value !== undefined);
      const given = Object.fromEntries(values.map(({ name, value }: Record<string, string>) => [name, value]));
      const inPod = { KUBERNETES_SERVICE_HOST: '10.0.0.1', KUBERNETES_SERVICE_PORT: '443' };
      expect(readConfig({ ...given, ...inPod }, { isRoot: false })).toMatchObject({
        driver: 'kubernetes',
        replicas: 4,
        drainSeconds: 20,
        internalUrl: 'http://catnap-api.catnap.svc',
        publicUrl: 'https://catnap.example.com',
        kubernetes: { namespace: 'catnap-computes', images: { 17: needed.postgresImages[17] } },
      });
      const secrets = env.filter(({ valueFrom }: { valueFrom?: object }) => valueFrom !== undefined);
      const keys = secrets.map(({ valueFrom }: Loose) => valueFrom.secretKeyRef.key);
      expect(keys).toEqual(['database-url', 'secret-key', 'api-key']);
    }
  });

  test('has more time to stop than its clients have to finish', () => {
    for (const { spec } of pods) expect(spec.terminationGracePeriodSeconds).toBeGreaterThan(full.drainSeconds + 15);
  });

  test('belongs to a budget, and is selected by nothing else', () => {
    for (const piece of pieces) {
      const budgets = of('PodDisruptionBudget').filter(
        ({ spec }) => JSON.stringify(spec.selector.matchLabels) === JSON.stringify(labelsOf(piece)),
      );
      expect(budgets.map(({ spec }) => spec.maxUnavailable)).toEqual([1]);
    }
  });
});

describe('rights', () => {
  test('are those of the worker, in the namespace of computes, and nobody else has any', () => {
    expect(of('Role').map(({ metadata, rules }) => [metadata.namespace, rules])).toEqual([
      ['catnap-computes', workerRules],
    ]);
    expect(of('RoleBinding').flatMap(({ subjects }) => subjects)).toEqual([
      { kind: 'ServiceAccount', name: 'catnap-worker', namespace: 'catnap' },
    ]);
    for (const rule of workerRules) {
      expect([...rule.apiGroups, ...rule.resources, ...rule.verbs]).not.toContain('*');
    }
  });

  test('no pod but a worker has credentials to ask with', () => {
    const mounts = of('Deployment').map(({ metadata, spec }) => [
      metadata.name,
      spec.template.spec.automountServiceAccountToken,
    ]);
    expect(mounts).toEqual([
      ['catnap-api', false],
      ['catnap-worker', true],
      ['catnap-proxy', false],
    ]);
  });
});

describe('network policies', () => {
  const ofComputes = of('NetworkPolicy').filter(({ metadata }) => metadata.namespace === 'catnap-computes');

  const replicas = { matchExpressions: [{ key: 'catnap.internal/replica', operator: 'Exists' }] };
  const primaries = { matchExpressions: [{ key: 'catnap.internal/branch', operator: 'Exists' }] };
  const isOfReplicas = ({ metadata }: Loose) => metadata.name === 'catnap-from-replicas';

  test('let nobody reach a compute but Catnap’s pods, the operator, and replicas their primaries', () => {
    const ingress = ofComputes.filter((one) => !isOfReplicas(one)).flatMap(({ spec }) => spec.ingress ?? []);
    const sources = ingress.flatMap(({ from }) => from);
    for (const source of sources) expect(source).toHaveProperty('namespaceSelector');
    expect(sources.map(({ namespaceSelector }: Loose) => Object.values(namespaceSelector.matchLabels)[0])).toEqual([
      'catnap',
      'catnap',
      'catnap',
      'cnpg-system',
    ]);
    expect(ofComputes.find(isOfReplicas)?.spec).toEqual({
      podSelector: primaries,
      policyTypes: ['Ingress'],
      ingress: [{ from: [{ podSelector: replicas }], ports: [{ protocol: 'TCP', port: 5432 }] }],
    });
    expect(ofComputes.find(({ metadata }) => metadata.name === 'catnap-nobody')?.spec).toEqual({
      podSelector: {},
      policyTypes: ['Ingress'],
      ingress: [],
    });
  });

  test('let SQL in a compute reach the API server and names alone, where the range is given', () => {
    const egress = ofComputes.flatMap(({ spec }) => spec.egress ?? []);
    expect(egress.map(({ to }) => to)).toEqual([
      [{ ipBlock: { cidr: '10.0.0.1/32' } }],
      [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'kube-system' } } }],
      [{ podSelector: primaries }],
    ]);
    // Of which the last is for replicas alone.
    expect(ofComputes.map(({ spec }) => spec).find(({ egress }) => egress?.length === 1)?.podSelector).toEqual(
      replicas,
    );
    expect(of('NetworkPolicy', installationManifests(options)).flatMap(({ spec }) => spec.egress ?? [])).toEqual([]);
  });
});

test.each([
  [{ namespace: 'Bad_Name' }, 'namespace'],
  [{ apis: 0 }, 'apis'],
  [{ workers: Number.NaN }, 'workers'],
  [{ drainSeconds: Number.NaN }, 'drainSeconds'],
  [{ computesNamespace: 'catnap' }, 'computesNamespace'],
  [{ apiServer: 'everything' }, 'apiServer'],
  [{ postgresImages: {} }, 'postgresImages'],
  [{ host: 'two words' }, 'host'],
])('an option that is wrong is named: %j', (change, name) => {
  expect(findWrongOption({ ...options, ...change })).toMatchObject({ name, form: expect.any(String) });
  expect(render({ ...needed, ...change })).toMatchObject({ wrong: { name }, text: '' });
});
