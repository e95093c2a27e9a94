/**
 * Host names and connection strings. On the default domain the printed URI goes to `localhost` and names the endpoint
 * in `options`, so that it works where `*.localhost` does not resolve and with drivers that have no TLS set up.
 */
import type { Config } from '../lib/config.ts';
import type { EndpointId } from '../lib/ids.ts';

const standardPort = 5432;

type HostnameConfig = Pick<Config, 'domain' | 'region' | 'pgPort'>;

const portSuffix = (config: HostnameConfig) => (config.pgPort === standardPort ? '' : `:${config.pgPort}`);

export function endpointHostname(config: HostnameConfig, id: EndpointId, pooled = false): string {
  return `${id}${pooled ? '-pooler' : ''}.${config.region}.${config.domain}${portSuffix(config)}`;
}

export function proxyHostname(config: HostnameConfig): string {
  return `${config.region}.${config.domain}${portSuffix(config)}`;
}

export interface ConnectionTarget {
  readonly endpointId: EndpointId;
  readonly databaseName: string;
  readonly roleName: string;
  readonly password: string;
  readonly pooled: boolean;
}

export interface ConnectionDetails {
  readonly uri: string;
  readonly hostname: string;
  readonly poolerHostname: string;
  readonly database: string;
  readonly role: string;
  readonly password: string;
}

export function connectionDetails(config: HostnameConfig, target: ConnectionTarget): ConnectionDetails {
  return {
    uri: connectionUri(config, target),
    hostname: endpointHostname(config, target.endpointId),
    poolerHostname: endpointHostname(config, target.endpointId, true),
    database: target.databaseName,
    role: target.roleName,
    password: target.password,
  };
}

export function connectionUri(config: HostnameConfig, target: ConnectionTarget): string {
  const login = `${encodeURIComponent(target.roleName)}:${encodeURIComponent(target.password)}`;
  const database = encodeURIComponent(target.databaseName);
  if (config.domain === 'localhost') {
    const endpoint = `${target.endpointId}${target.pooled ? '-pooler' : ''}`;
    return `postgresql://${login}@localhost${portSuffix(config)}/${database}?options=endpoint%3D${endpoint}`;
  }
  const hostname = endpointHostname(config, target.endpointId, target.pooled);
  return `postgresql://${login}@${hostname}/${database}?sslmode=require&channel_binding=require`;
}
