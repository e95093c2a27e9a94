/**
 * Who may talk to whom, and the two ways in. Computes take connections from the pods that run SQL in them (proxies,
 * and workers, which make roles and databases) and from the operator; primaries also from read replicas, which stream
 * from them. Nobody else reaches them.
 */
import { branchLabel, replicaLabel } from '../../compute/kubernetes/manifests/labels.ts';
import { labelsOf, type Manifest, nameOf, namespaceLabel, type Piece } from './manifest.ts';
import type { InstallationOptions } from './options.ts';

/** Of a Postgres of CloudNativePG, and of the manager beside it, which the operator asks. */
const computePort = 5432;
const managerPort = 8000;
const dnsPort = 53;

const tcp = (port: number | string) => ({ protocol: 'TCP', port });
const having = (label: string) => ({ matchExpressions: [{ key: label, operator: 'Exists' }] });
const inNamespace = (name: string) => ({ namespaceSelector: { matchLabels: { [namespaceLabel]: name } } });

export function entrances(options: InstallationOptions): Manifest[] {
  const { namespace, host, ingressClass, ingressTlsSecret } = options;
  const api = nameOf('api');
  return [
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: api, namespace },
      spec: { selector: labelsOf('api'), ports: [{ name: 'http', port: 80, targetPort: 'http' }] },
    },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'catnap-databases', namespace },
      spec: {
        type: 'LoadBalancer',
        // Keeps the addresses of clients, by which projects admit them.
        externalTrafficPolicy: 'Local',
        // A cancel request is a connection of its own, and is carried out sooner by the proxy that gave out its key.
        sessionAffinity: 'ClientIP',
        selector: labelsOf('proxy'),
        ports: [{ name: 'databases', port: 5432, targetPort: 'databases' }],
      },
    },
    {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'Ingress',
      metadata: { name: api, namespace },
      spec: {
        ...(ingressClass !== undefined && { ingressClassName: ingressClass }),
        tls: [{ hosts: [host], secretName: ingressTlsSecret }],
        rules: [
          {
            host,
            http: {
              paths: [{ path: '/', pathType: 'Prefix', backend: { service: { name: api, port: { name: 'http' } } } }],
            },
          },
        ],
      },
    },
  ];
}

export function networkPolicies(options: InstallationOptions): Manifest[] {
  const { namespace, computesNamespace, ingressNamespace, monitoringNamespace, operatorNamespace } = options;
  const everyPod = {};
  const from = (piece: Piece) => ({ podSelector: { matchLabels: labelsOf(piece) } });
  const elsewhere = (piece: Piece) => ({ ...inNamespace(namespace), ...from(piece) });
  const toApi = [inNamespace(ingressNamespace), inNamespace(monitoringNamespace), from('worker')];
  return [
    policy(namespace, 'nobody', everyPod, []),
    policy(namespace, 'to-api', { matchLabels: labelsOf('api') }, [{ from: toApi, ports: [tcp('http')] }]),
    policy(namespace, 'to-proxies', { matchLabels: labelsOf('proxy') }, [
      { ports: [tcp('databases')] },
      { from: [inNamespace(monitoringNamespace)], ports: [tcp('http')] },
    ]),
    policy(computesNamespace, 'nobody', everyPod, []),
    policy(computesNamespace, 'from-catnap', everyPod, [
      { from: [elsewhere('proxy'), elsewhere('api'), elsewhere('worker')], ports: [tcp(computePort)] },
    ]),
    policy(computesNamespace, 'from-operator', everyPod, [
      { from: [inNamespace(operatorNamespace)], ports: [tcp(managerPort), tcp(computePort)] },
    ]),
    // A policy cannot say "of the same project": what keeps a replica out of others' primaries is their login.
    policy(computesNamespace, 'from-replicas', having(branchLabel), [
      { from: [{ podSelector: having(replicaLabel) }], ports: [tcp(computePort)] },
    ]),
    ...(options.apiServer === undefined ? [] : [fromComputes(options, options.apiServer), toPrimaries(options)]),
  ].map((made) => ({ ...made, metadata: { ...made.metadata, name: `catnap-${made.metadata.name}` } }));
}

function policy(namespace: string, name: string, podSelector: object, ingress: readonly object[]): Manifest {
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { name, namespace },
    spec: { podSelector, policyTypes: ['Ingress'], ingress },
  };
}

/** From replicas, in addition to what every compute may reach. */
function toPrimaries({ computesNamespace }: InstallationOptions): Manifest {
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { name: 'to-primaries', namespace: computesNamespace },
    spec: {
      podSelector: having(replicaLabel),
      policyTypes: ['Egress'],
      egress: [{ to: [{ podSelector: having(branchLabel) }], ports: [tcp(computePort)] }],
    },
  };
}

/** The manager beside each Postgres talks to the API server; SQL in one reaches that, names, and nothing else. */
function fromComputes({ computesNamespace }: InstallationOptions, apiServer: string): Manifest {
  const dns = [tcp(dnsPort), { protocol: 'UDP', port: dnsPort }];
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { name: 'from-computes', namespace: computesNamespace },
    spec: {
      podSelector: {},
      policyTypes: ['Egress'],
      egress: [
        { to: [{ ipBlock: { cidr: apiServer } }], ports: [tcp(443), tcp(6443)] },
        { to: [inNamespace('kube-system')], ports: dns },
      ],
    },
  };
}
