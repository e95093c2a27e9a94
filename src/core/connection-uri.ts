/**
 * Host names and connection strings. On the default domain the printed URI goes to `localhost` and names the endpoint
 * in `options`, so that it works where `*.localhost` does not resolve and with drivers that have no TLS set up.
 */
import type { Config } from '../lib/config.ts';
import type { EndpointId } from '../lib/ids.ts';

const standardPort = 5432;

type HostConfig = Pick<Config, 'domain' | 'region' | 'pgPort'>;

const portSuffix = (config: HostConfig) => (config.pgPort === standardPort ? '' : `:${config.pgPort}`);

export function endpointHost(config: HostConfig, id: EndpointId, pooled = false): string {
  return `${id}${pooled ? '-pooler' : ''}.${config.region}.${config.domain}${portSuffix(config)}`;
}

export function proxyHost(config: HostConfig): string {
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
  readonly host: string;
  readonly poolerHost: string;
  readonly database: string;
  readonly role: string;
  readonly password: string;
}

export function connectionDetails(config: HostConfig, target: ConnectionTarget): ConnectionDetails {
  return {
    uri: connectionUri(config, target),
    host: endpointHost(config, target.endpointId),
    poolerHost: endpointHost(config, target.endpointId, true),
    database: target.databaseName,
    role: target.roleName,
    password: target.password,
  };
}

export function connectionUri(config: HostConfig, target: ConnectionTarget): string {
  const login = `${encodeURIComponent(target.roleName)}:${encodeURIComponent(target.password)}`;
  const database = encodeURIComponent(target.databaseName);
  if (config.domain === 'localhost') {
    const endpoint = `${target.endpointId}${target.pooled ? '-pooler' : ''}`;
    return `postgresql://${login}@localhost${portSuffix(config)}/${database}?options=endpoint%3D${endpoint}`;
  }
  const host = endpointHost(config, target.endpointId, target.pooled);
  return `postgresql://${login}@${host}/${database}?sslmode=require&channel_binding=require`;
}
