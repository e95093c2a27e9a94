/** The settings of a cluster that computes run on, with `CATNAP_DRIVER=kubernetes`. */
import { isAbsolute } from 'node:path';
import { ConfigError, type Environment, integer, isSet } from './config-values.ts';

export interface KubernetesSettings {
  /** A kubeconfig, or the API server as every pod is told it. */
  readonly access:
    | { readonly kind: 'file'; readonly path: string }
    | { readonly kind: 'pod'; readonly host: string; readonly port: string };
  /** Undefined for that of the kubeconfig, or of the pod. */
  readonly namespace: string | undefined;
  /** By major. */
  readonly images: Readonly<Record<number, string>>;
  /** Undefined for the cluster's defaults. */
  readonly storageClass: string | undefined;
  readonly snapshotClass: string | undefined;
  readonly volumeSize: string;
  /** How long a compute naps before its pod goes; 0 for never. */
  readonly deepSleepSeconds: number;
}

const prefix = 'CATNAP_KUBERNETES_';
const name = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/;
const nameForm = 'a name of lower-case letters, digits, - and .';

/** Undefined unless that driver is chosen; bad values are found all the same, when they are set. */
export function readKubernetesSettings(
  env: Environment,
  isChosen: boolean,
  majors: readonly number[],
): KubernetesSettings | undefined {
  const path = optional(env, `${prefix}CONFIG`, isAbsolute, 'an absolute path of a kubeconfig');
  const isName = (value: string) => name.test(value);
  const rest = {
    namespace: optional(env, `${prefix}NAMESPACE`, isName, nameForm),
    images: readImages(env, majors),
    storageClass: optional(env, `${prefix}STORAGE_CLASS`, isName, nameForm),
    snapshotClass: optional(env, `${prefix}SNAPSHOT_CLASS`, isName, nameForm),
    volumeSize: optional(env, `${prefix}VOLUME_SIZE`, isSize, 'an amount such as 10Gi') ?? '10Gi',
    deepSleepSeconds: integer(env, `${prefix}DEEP_SLEEP_SECONDS`, 3_600, 0, 31_536_000),
  };
  if (!isChosen) return undefined;
  if (Object.keys(rest.images).length === 0) {
    const form = `local, or kubernetes together with ${prefix}IMAGE_${majors.at(-1)} and the like`;
    throw new ConfigError('CATNAP_DRIVER', 'kubernetes', form);
  }
  if (path !== undefined) return { access: { kind: 'file', path }, ...rest };
  const { KUBERNETES_SERVICE_HOST: host = '', KUBERNETES_SERVICE_PORT: port = '' } = env;
  if (host === '' || port === '') {
    const form = `local, or kubernetes in a pod or together with ${prefix}CONFIG`;
    throw new ConfigError('CATNAP_DRIVER', 'kubernetes', form);
  }
  return { access: { kind: 'pod', host, port }, ...rest };
}

const isSize = (value: string) => /^[1-9]\d{0,5}[MGT]i$/.test(value);

function optional(env: Environment, variable: string, isGood: (value: string) => boolean, form: string) {
  if (!isSet(env, variable)) return undefined;
  const value = env[variable] ?? '';
  if (!isGood(value)) throw new ConfigError(variable, value, form);
  return value;
}

/** Only of majors whose binaries Catnap has itself, because it asks them whether settings are good. */
function readImages(env: Environment, majors: readonly number[]): Record<number, string> {
  const found: Record<number, string> = {};
  for (const [variable, value] of Object.entries(env)) {
    const [, digits] = /^CATNAP_KUBERNETES_IMAGE_(.*)$/.exec(variable) ?? [];
    if (digits === undefined || !value) continue;
    const major = Number(digits);
    if (!majors.includes(major)) {
      throw new ConfigError(variable, value, `majors ${majors.join(', ')}; others need CATNAP_PG_BIN_${digits}, too`);
    }
    const hasTag = new RegExp(`^[^\\s:]+(:\\d+/[^\\s:]+)?:${major}(\\.\\d+)?([-.@]\\S*)?$`).test(value);
    if (!hasTag) throw new ConfigError(variable, value, `an image whose tag begins with ${major}, such as ${major}.6`);
    found[major] = value;
  }
  return found;
}
