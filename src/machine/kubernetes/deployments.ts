/** Catnap's own pods: three Deployments and what keeps enough of each running. */
import { labelsOf, type Manifest, nameOf, type Piece, pieces, ports } from './manifest.ts';
import type { InstallationOptions } from './options.ts';

/** An empty volume belongs to root, and a home must belong to Catnap, which makes it in there. */
const homeVolume = '/var/lib/catnap';
const home = `${homeVolume}/home`;
const tlsFolder = '/tls';
/** That of Catnap's image (`container/Containerfile`), which knows its name: `initdb` wants one. */
const uid = 1_000;
/** Until the load balancer and the ingress have taken a pod out, which is told to them and to the pod at once. */
const unlistedSeconds = 5;
/** Beyond what clients may take to finish. */
const stopSeconds = 30;

/**
 * SQL over HTTP and WebSockets go through a proxy of the same pod, so pods with an API have one. Beside the proxies
 * that take the database port, an API answers probes and has the metrics; no Service leads to it.
 */
const processesOf: Readonly<Record<Piece, string>> = { api: 'api,proxy', worker: 'worker', proxy: 'api,proxy' };
/** A worker does the most work, of copying and of checking settings with a Postgres of its own. */
const resourcesOf: Readonly<Record<Piece, object>> = {
  api: { requests: { cpu: '100m', memory: '384Mi' }, limits: { memory: '1Gi' } },
  worker: { requests: { cpu: '100m', memory: '384Mi' }, limits: { memory: '1Gi' } },
  proxy: { requests: { cpu: '250m', memory: '512Mi' }, limits: { memory: '2Gi' } },
};

export function deployments(options: InstallationOptions): Manifest[] {
  return pieces.flatMap((piece) => [deployment(options, piece), disruptionBudget(options, piece)]);
}

export const replicasOf = ({ apis, workers, proxies }: InstallationOptions, piece: Piece): number =>
  ({ api: apis, worker: workers, proxy: proxies })[piece];

function deployment(options: InstallationOptions, piece: Piece): Manifest {
  const { namespace, tlsSecret, drainSeconds } = options;
  const labels = labelsOf(piece);
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: nameOf(piece), namespace, labels },
    spec: {
      replicas: replicasOf(options, piece),
      selector: { matchLabels: labels },
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } },
      template: {
        metadata: { labels },
        spec: {
          serviceAccountName: nameOf(piece),
          automountServiceAccountToken: piece === 'worker',
          enableServiceLinks: false,
          terminationGracePeriodSeconds: unlistedSeconds + drainSeconds + stopSeconds,
          securityContext: {
            runAsNonRoot: true,
            runAsUser: uid,
            runAsGroup: uid,
            fsGroup: uid,
            seccompProfile: { type: 'RuntimeDefault' },
          },
          topologySpreadConstraints: [
            {
              maxSkew: 1,
              topologyKey: 'kubernetes.io/hostname',
              whenUnsatisfiable: 'ScheduleAnyway',
              labelSelector: { matchLabels: labels },
            },
          ],
          containers: [container(options, piece)],
          volumes: [
            { name: 'home', emptyDir: {} },
            { name: 'tmp', emptyDir: {} },
            ...(piece === 'worker' ? [] : [{ name: 'tls', secret: { secretName: tlsSecret, defaultMode: 0o440 } }]),
          ],
        },
      },
    },
  };
}

function container(options: InstallationOptions, piece: Piece): object {
  const isWorker = piece === 'worker';
  const withPorts = {
    ports: [
      { name: 'http', containerPort: ports.http },
      { name: 'databases', containerPort: ports.databases },
    ],
    lifecycle: { preStop: { sleep: { seconds: unlistedSeconds } } },
    startupProbe: { httpGet: { path: '/healthz', port: 'http' }, periodSeconds: 2, failureThreshold: 60 },
    readinessProbe: { httpGet: { path: '/readyz', port: 'http' }, periodSeconds: 5, timeoutSeconds: 3 },
    livenessProbe: { httpGet: { path: '/healthz', port: 'http' }, periodSeconds: 10, timeoutSeconds: 5 },
  };
  return {
    name: 'catnap',
    image: options.image,
    args: ['up', '--processes', processesOf[piece]],
    env: environment(options, piece),
    resources: resourcesOf[piece],
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    },
    volumeMounts: [
      { name: 'home', mountPath: homeVolume },
      { name: 'tmp', mountPath: '/tmp' },
      ...(isWorker ? [] : [{ name: 'tls', mountPath: tlsFolder, readOnly: true }]),
    ],
    ...(isWorker ? { livenessProbe: workerProbe } : withPorts),
  };
}

/** A worker listens on nothing but the socket that keeps a second Catnap from its home. */
const workerProbe = {
  exec: {
    command: [
      'node',
      '-e',
      `require('net').connect('${home}/catnap.sock').on('connect',()=>process.exit(0)).on('error',()=>process.exit(1))`,
    ],
  },
  initialDelaySeconds: 60,
  periodSeconds: 30,
  timeoutSeconds: 10,
};

function environment(options: InstallationOptions, piece: Piece): object[] {
  const { namespace, computesNamespace, host, domain, region, secret, drainSeconds, volumeSize } = options;
  const { storageClass, snapshotClass, postgresImages, apis, proxies } = options;
  const given: Record<string, string | undefined> = {
    CATNAP_HOME: home,
    CATNAP_BIND: '0.0.0.0',
    CATNAP_HTTP_PORT: String(ports.http),
    CATNAP_PG_PORT: String(ports.databases),
    CATNAP_PUBLIC_URL: `https://${host}`,
    CATNAP_INTERNAL_URL: `http://${nameOf('api')}.${namespace}.svc`,
    CATNAP_DOMAIN: domain,
    CATNAP_REGION: region,
    CATNAP_DRAIN_SECONDS: String(drainSeconds),
    // Each pod has as many proxies as it has cores for; what they share is divided by the pods.
    CATNAP_REPLICAS: String(apis + proxies),
    CATNAP_DRIVER: 'kubernetes',
    CATNAP_KUBERNETES_NAMESPACE: computesNamespace,
    CATNAP_KUBERNETES_VOLUME_SIZE: volumeSize,
    CATNAP_KUBERNETES_STORAGE_CLASS: storageClass,
    CATNAP_KUBERNETES_SNAPSHOT_CLASS: snapshotClass,
    ...Object.fromEntries(
      Object.entries(postgresImages).map(([major, image]) => [`CATNAP_KUBERNETES_IMAGE_${major}`, image]),
    ),
    ...(piece !== 'worker' && { CATNAP_TLS_CERT: `${tlsFolder}/tls.crt`, CATNAP_TLS_KEY: `${tlsFolder}/tls.key` }),
  };
  const secrets = {
    CATNAP_DATABASE_URL: 'database-url',
    CATNAP_SECRET_KEY: 'secret-key',
    CATNAP_API_KEY: 'api-key',
  };
  return [
    ...Object.entries(given).flatMap(([name, value]) => (value === undefined ? [] : [{ name, value }])),
    ...Object.entries(secrets).map(([name, key]) => ({ name, valueFrom: { secretKeyRef: { name: secret, key } } })),
  ];
}

/** Nodes are emptied one pod of each kind at a time. */
function disruptionBudget({ namespace }: InstallationOptions, piece: Piece): Manifest {
  return {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: nameOf(piece), namespace },
    spec: { maxUnavailable: 1, selector: { matchLabels: labelsOf(piece) } },
  };
}
