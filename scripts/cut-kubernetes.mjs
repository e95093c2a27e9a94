/**
 * Cuts from the definitions of Kubernetes itself the fields that Catnap's own manifests have, and writes them to
 * test/fixtures/kubernetes/schemas.json, against which a test checks every manifest, as closed objects.
 *
 * `node scripts/cut-kubernetes.mjs FILE`, by hand, when a manifest gets another field. FILE holds the definitions of
 * `source` as JSON, under `definitions`.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { cutSchema } from './cut-schema.mjs';

const source = 'github.com/kubernetes/kubernetes, v1.36.0, api/openapi-spec/swagger.json, Apache-2.0';

const head = 'apiVersion kind metadata.name metadata.namespace metadata.labels metadata.annotations';
const probe = (name) =>
  ['httpGet.path', 'httpGet.port', 'periodSeconds', 'timeoutSeconds', 'failureThreshold', 'initialDelaySeconds']
    .concat('exec.command')
    .map((field) => `${name}.${field}`);
const container = [
  ...['name', 'image', 'args', 'env.name', 'env.value', 'ports.name', 'ports.containerPort'],
  ...['env.valueFrom.secretKeyRef.name', 'env.valueFrom.secretKeyRef.key', 'lifecycle.preStop.sleep.seconds'],
  ...['resources.requests', 'resources.limits', 'securityContext.allowPrivilegeEscalation'],
  ...['securityContext.readOnlyRootFilesystem', 'securityContext.capabilities.drop'],
  ...['volumeMounts.name', 'volumeMounts.mountPath', 'volumeMounts.readOnly'],
  ...['startupProbe', 'readinessProbe', 'livenessProbe'].flatMap(probe),
];
const pod = [
  ...['serviceAccountName', 'automountServiceAccountToken', 'enableServiceLinks', 'terminationGracePeriodSeconds'],
  ...['securityContext.runAsNonRoot', 'securityContext.runAsUser', 'securityContext.runAsGroup'],
  ...['securityContext.fsGroup', 'securityContext.seccompProfile.type', 'topologySpreadConstraints.maxSkew'],
  ...['topologySpreadConstraints.topologyKey', 'topologySpreadConstraints.whenUnsatisfiable'],
  ...['topologySpreadConstraints.labelSelector.matchLabels', 'volumes.name', 'volumes.emptyDir'],
  ...['volumes.secret.secretName', 'volumes.secret.defaultMode'],
  ...container.map((field) => `containers.${field}`),
];
const peer = (place) =>
  ['podSelector', 'namespaceSelector.matchLabels', 'ipBlock.cidr']
    .map((field) => `${place}.${field}`)
    .concat(['ports.protocol', 'ports.port'].map((field) => `${place.replace(/\.\w+$/, '')}.${field}`));

/** The paths that are kept of each kind, with all that is below them. */
const kept = {
  'core.v1.Namespace': '',
  'core.v1.ServiceAccount': 'automountServiceAccountToken',
  'core.v1.Service': `spec.type spec.selector spec.externalTrafficPolicy spec.sessionAffinity
    spec.ports.name spec.ports.port spec.ports.targetPort`,
  'rbac.v1.Role': 'rules.apiGroups rules.resources rules.verbs',
  'rbac.v1.RoleBinding': 'roleRef subjects',
  'networking.v1.NetworkPolicy': `spec.podSelector spec.policyTypes
    ${peer('spec.ingress.from').join(' ')} ${peer('spec.egress.to').join(' ')}`,
  'networking.v1.Ingress': `spec.ingressClassName spec.tls spec.rules.host spec.rules.http.paths.path
    spec.rules.http.paths.pathType spec.rules.http.paths.backend.service`,
  'apps.v1.Deployment': `spec.replicas spec.selector.matchLabels spec.strategy spec.template.metadata.labels
    ${pod.map((field) => `spec.template.spec.${field}`).join(' ')}`,
  'policy.v1.PodDisruptionBudget': 'spec.maxUnavailable spec.selector.matchLabels',
};

const [file] = process.argv.slice(2);
const { definitions } = JSON.parse(readFileSync(file, 'utf8'));
const resolve = (schema) =>
  schema.$ref === undefined ? schema : resolve(definitions[schema.$ref.slice('#/definitions/'.length)]);
const kinds = Object.entries(kept).map(([name, paths]) => {
  const kind = name.split('.').at(-1);
  const all = `${head} ${paths}`.trim().split(/\s+/);
  return [kind, cutSchema(definitions[`io.k8s.api.${name}`], all, kind, resolve)];
});
const target = fileURLToPath(new URL('../test/fixtures/kubernetes/schemas.json', import.meta.url));
writeFileSync(target, `${JSON.stringify({ source, kinds: Object.fromEntries(kinds) }, null, 2)}\n`);
