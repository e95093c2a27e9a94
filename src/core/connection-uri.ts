/**
 * Host names and connection strings. On the default domain the printed URI goes to `localhost` and names the endpoint
 * in `options`, so that it works where `*.localhost` does not resolve. It leaves TLS to the driver where the database
 * port is open to this machine alone; elsewhere the port takes nothing else, and the URI says so.
 */
import type { Config } from '../lib/config.ts';
import type { EndpointId } from '../lib/ids.ts';
import { isLoopback } from '../lib/ip.ts';

const standardPort = 5432;
const secured = 'sslmode=require&channel_binding=require';

type HostnameConfig = Pick<Config, 'domain' | 'region' | 'pgPort'>;
type UriConfig = HostnameConfig & Pick<Config, 'bind'>;

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

export function connectionDetails(config: UriConfig, target: ConnectionTarget): ConnectionDetails {
  return {
    uri: connectionUri(config, target),
    hostname: endpointHostname(config, target.endpointId),
    poolerHostname: endpointHostname(config, target.endpointId, true),
    database: target.databaseName,
    role: target.roleName,
    password: target.password,
  };
}

export function connectionUri(config: UriConfig, target: ConnectionTarget): string {
  const login = `${encodeURIComponent(target.roleName)}:${encodeURIComponent(target.password)}`;
  const database = encodeURIComponent(target.databaseName);
  if (config.domain === 'localhost') {
    const endpoint = `${target.endpointId}${target.pooled ? '-pooler' : ''}`;
    const tls = isLoopback(config.bind) ? '' : `&${secured}`;
    return `postgresql://${login}@localhost${portSuffix(config)}/${database}?options=endpoint%3D${endpoint}${tls}`;
  }
  const hostname = endpointHostname(config, target.endpointId, target.pooled);
  return `postgresql://${login}@${hostname}/${database}?${secured}`;
}
