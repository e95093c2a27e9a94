/** What an operator says about an installation on Kubernetes, and what of it is wrong. */

export interface InstallationOptions {
  /** An image that `container/Containerfile` makes. */
  readonly image: string;
  /** Of Catnap's own processes, and of computes. */
  readonly namespace: string;
  readonly computesNamespace: string;
  /** Where the API and the console are found. */
  readonly host: string;
  /** Endpoints are `<id>.<region>.<domain>`. */
  readonly domain: string;
  readonly region: string;
  readonly apis: number;
  readonly workers: number;
  readonly proxies: number;
  /** Holds `database-url`, `secret-key` and `api-key`. */
  readonly secret: string;
  /** The certificate of the database port, and that of the API's host. */
  readonly tlsSecret: string;
  readonly ingressTlsSecret: string;
  readonly ingressClass: string | undefined;
  /** Where the ingress controller, the monitoring and CloudNativePG run. */
  readonly ingressNamespace: string;
  readonly monitoringNamespace: string;
  readonly operatorNamespace: string;
  /** Images of Postgres, by major. */
  readonly postgresImages: Readonly<Record<string, string>>;
  readonly storageClass: string | undefined;
  readonly snapshotClass: string | undefined;
  readonly volumeSize: string;
  /** Addresses of the API server, as network policies see them; without them computes may connect to anything. */
  readonly apiServer: string | undefined;
  readonly drainSeconds: number;
}

export const usualOptions = {
  namespace: 'catnap',
  computesNamespace: 'catnap-computes',
  region: 'local',
  apis: 2,
  workers: 2,
  proxies: 2,
  secret: 'catnap',
  tlsSecret: 'catnap-databases-tls',
  ingressTlsSecret: 'catnap-api-tls',
  ingressClass: undefined,
  ingressNamespace: 'ingress-nginx',
  monitoringNamespace: 'monitoring',
  operatorNamespace: 'cnpg-system',
  storageClass: undefined,
  snapshotClass: undefined,
  volumeSize: '10Gi',
  apiServer: undefined,
  drainSeconds: 20,
} as const;

const replicasMax = 20;
const drainSecondsMax = 3_600;
const name = { form: /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/, words: 'a name of lower-case letters, digits and -' };
const host = { form: /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/, words: 'a lower-case DNS name' };
const image = { form: /^[^\s]+$/, words: 'an image' };
const forms: Readonly<Record<string, { readonly form: RegExp; readonly words: string }>> = {
  image,
  namespace: name,
  computesNamespace: name,
  host,
  domain: host,
  region: name,
  secret: host,
  tlsSecret: host,
  ingressTlsSecret: host,
  ingressClass: host,
  ingressNamespace: name,
  monitoringNamespace: name,
  operatorNamespace: name,
  storageClass: host,
  snapshotClass: host,
  volumeSize: { form: /^[1-9]\d{0,5}[MGT]i$/, words: 'an amount such as 10Gi' },
  apiServer: { form: /^\d{1,3}(\.\d{1,3}){3}\/\d{1,2}$/, words: 'an IPv4 range such as 10.96.0.1/32' },
};

/** The first thing that is wrong, as the name of an option and what it may be; null when nothing is. */
export function findWrongOption(options: InstallationOptions): { readonly name: string; readonly form: string } | null {
  for (const [option, value] of Object.entries(options)) {
    const expected = forms[option];
    if (expected !== undefined && value !== undefined && !expected.form.test(String(value))) {
      return { name: option, form: expected.words };
    }
  }
  for (const option of ['apis', 'workers', 'proxies'] as const) {
    const count = options[option];
    if (!Number.isInteger(count) || count < 1 || count > replicasMax) {
      return { name: option, form: `a whole number from 1 to ${replicasMax}` };
    }
  }
  const { drainSeconds } = options;
  if (!Number.isInteger(drainSeconds) || drainSeconds < 0 || drainSeconds > drainSecondsMax) {
    return { name: 'drainSeconds', form: `a whole number from 0 to ${drainSecondsMax}` };
  }
  if (options.namespace === options.computesNamespace) {
    return { name: 'computesNamespace', form: 'another namespace than that of Catnap itself' };
  }
  const majors = Object.keys(options.postgresImages);
  if (majors.length === 0)
    return { name: 'postgresImages', form: 'an image for at least one major, such as 17=…:17.6' };
  return null;
}
