import { describe, expect, it } from 'vitest';
import { ConfigError, localUrl, proxiesFor, readConfig } from './config.ts';
import { settingDocs } from './setting-docs.ts';

const user = { isRoot: false };

describe('readConfig', () => {
  it('has a default for everything', () => {
    const config = readConfig({ XDG_DATA_HOME: '/data' }, user);
    expect(config).toMatchObject({
      home: '/data/catnap',
      bind: '127.0.0.1',
      httpPort: 7070,
      pgPort: 5432,
      pgPortIsExplicit: false,
      domain: 'localhost',
      region: 'local',
      publicUrl: 'http://localhost:7070',
      driver: 'local',
      uids: null,
      rateLimitPerMinute: undefined,
      suspendMinSeconds: 60,
      defaultPlan: 'scale',
      pgVersions: [17, 18],
      logLevel: 'info',
    });
    expect(Object.isFrozen(config)).toBe(true);
  });

  it('gives root a home and uids of its own', () => {
    const config = readConfig({ CATNAP_UID_BASE: '50000' }, { isRoot: true });
    expect(config.home).toBe('/var/lib/catnap');
    expect(config.uids).toEqual({ service: 50_000, systemDatabase: 50_001, firstTenant: 51_000 });
  });

  it('has a proxy for each four cores, up to four', () => {
    expect([1, 2, 4, 7, 8, 12, 16, 64].map(proxiesFor)).toEqual([1, 1, 1, 1, 2, 3, 4, 4]);
    expect(readConfig({ CATNAP_PROXIES: '3' }, user).proxies).toBe(3);
    expect(() => readConfig({ CATNAP_PROXIES: '5' }, user)).toThrow('a whole number from 1 to 4');
    expect(readConfig({}, user).proxyRuntime).toBe('auto');
    expect(readConfig({ CATNAP_PROXY_RUNTIME: 'bun' }, user).proxyRuntime).toBe('bun');
    expect(() => readConfig({ CATNAP_PROXY_RUNTIME: 'deno' }, user)).toThrow('CATNAP_PROXY_RUNTIME');
  });

  it('has one API and one worker, unless it is told otherwise', () => {
    expect(readConfig({}, user)).toMatchObject({ apis: 1, workers: 1, replicas: 1, drainSeconds: 10 });
    const several = { CATNAP_APIS: '2', CATNAP_WORKERS: '3', CATNAP_REPLICAS: '5', CATNAP_DRAIN_SECONDS: '0' };
    expect(readConfig(several, user)).toMatchObject({ apis: 2, workers: 3, replicas: 5, drainSeconds: 0 });
    for (const name of ['CATNAP_APIS', 'CATNAP_WORKERS']) {
      expect(() => readConfig({ [name]: '5' }, user)).toThrow(`${name}`);
    }
    const secretKey = Buffer.alloc(32, 7).toString('base64');
    expect(readConfig({ CATNAP_SECRET_KEY: secretKey }, user).secretKey).toBe(secretKey);
    expect(() => readConfig({ CATNAP_SECRET_KEY: 'c2hvcnQ=' }, user)).toThrow('32 bytes in base64');
  });

  it('limits the rate once strangers can reach it', () => {
    expect(readConfig({ CATNAP_BIND: '0.0.0.0' }, user).rateLimitPerMinute).toBe(700);
    expect(readConfig({ CATNAP_BIND: '0.0.0.0', CATNAP_RATE_LIMIT: 'off' }, user).rateLimitPerMinute).toBeUndefined();
    expect(readConfig({ CATNAP_RATE_LIMIT: '30' }, user).rateLimitPerMinute).toBe(30);
  });

  it('adds configured majors to the embedded ones', () => {
    const config = readConfig({ CATNAP_PG_BIN_16: '/usr/lib/postgresql/16/bin' }, user);
    expect(config.pgVersions).toEqual([16, 17, 18]);
    expect(config.pgBin).toEqual({ 16: '/usr/lib/postgresql/16/bin' });
  });

  it.each([
    ['CATNAP_HOME', 'relative/path', /absolute path/],
    ['CATNAP_HOME', '/', /absolute path/],
    ['CATNAP_BIND', 'example.com', /IP address/],
    ['CATNAP_HTTP_PORT', '0', /1 to 65535/],
    ['CATNAP_HTTP_PORT', '70700', /1 to 65535/],
    ['CATNAP_PG_PORT', '5432x', /1 to 65535/],
    ['CATNAP_DOMAIN', 'Not A Domain', /DNS name/],
    ['CATNAP_REGION', 'Über', /a-z/],
    ['CATNAP_PUBLIC_URL', 'ftp://x', /http/],
    ['CATNAP_DATABASE_URL', 'mysql://x', /postgres/],
    ['CATNAP_DRIVER', 'docker', /local, kubernetes/],
    ['CATNAP_DRIVER', 'kubernetes', /CATNAP_KUBERNETES_IMAGE_18/],
    ['CATNAP_KUBERNETES_CONFIG', 'kube.yaml', /absolute path/],
    ['CATNAP_KUBERNETES_NAMESPACE', 'My Computes', /lower-case/],
    ['CATNAP_KUBERNETES_IMAGE_16', 'postgresql:16.10', /majors 17, 18; others need CATNAP_PG_BIN_16/],
    ['CATNAP_KUBERNETES_IMAGE_17', 'postgresql:18.1', /tag begins with 17/],
    ['CATNAP_KUBERNETES_IMAGE_17', 'registry.test:5000/postgresql', /tag begins with 17/],
    ['CATNAP_KUBERNETES_VOLUME_SIZE', '10', /10Gi/],
    ['CATNAP_UID_BASE', '5', /1000 to/],
    ['CATNAP_RATE_LIMIT', 'lots', /off, or/],
    ['CATNAP_SUSPEND_MIN_SECONDS', '-1', /whole number/],
    ['CATNAP_TEMP_DISK_BYTES', '5', /1048576/],
    ['CATNAP_OUTBOUND_ALLOW', '10.0.0.0', /loopback, or IPv4 ranges/],
    ['CATNAP_OUTBOUND_ALLOW', '127.0.0.0/8', /loopback, or IPv4 ranges/],
    ['CATNAP_API_KEY', 'short', /32 to 128/],
    ['CATNAP_DEFAULT_PLAN', 'gold', /free, launch, scale/],
    ['CATNAP_PG_BIN_9', '/usr/bin', /majors 14/],
    ['CATNAP_PG_BIN_17', 'bin', /absolute path/],
    ['CATNAP_LOG_LEVEL', 'loud', /fatal, error/],
  ])('refuses %s=%s by name, with what is allowed', (name, value, allowed) => {
    const read = () => readConfig({ [name]: value }, user);
    expect(read).toThrow(ConfigError);
    expect(read).toThrow(allowed);
    expect(read).toThrow(name);
  });

  it('takes a cluster from a kubeconfig, or from what a pod is told', () => {
    const image = { CATNAP_KUBERNETES_IMAGE_17: 'registry.test:5000/postgresql:17.6-standard@sha256:abc' };
    const chosen = { CATNAP_DRIVER: 'kubernetes', ...image };
    expect(() => readConfig(chosen, user)).toThrow(/in a pod or together with CATNAP_KUBERNETES_CONFIG/);
    const told = { KUBERNETES_SERVICE_HOST: '10.0.0.1', KUBERNETES_SERVICE_PORT: '443' };
    const { pgVersions, kubernetes } = readConfig({ ...chosen, ...told }, user);
    expect(pgVersions).toEqual([17]);
    expect(kubernetes).toMatchObject({
      access: { kind: 'pod', host: '10.0.0.1', port: '443' },
      images: { 17: image.CATNAP_KUBERNETES_IMAGE_17 },
      volumeSize: '10Gi',
      deepSleepSeconds: 3_600,
    });
    const file = { CATNAP_KUBERNETES_CONFIG: '/etc/catnap/kubeconfig', CATNAP_KUBERNETES_DEEP_SLEEP_SECONDS: '0' };
    expect(readConfig({ ...chosen, ...told, ...file }, user).kubernetes).toMatchObject({
      access: { kind: 'file', path: '/etc/catnap/kubeconfig' },
      deepSleepSeconds: 0,
    });
    // Whatever is set for it, another driver has none.
    expect(readConfig({ ...image, ...told, ...file }, user)).toMatchObject({
      kubernetes: undefined,
      pgVersions: [17, 18],
    });
  });

  it('never repeats a value that may hold a secret', () => {
    expect(() => readConfig({ CATNAP_DATABASE_URL: 'hunter2' }, user)).not.toThrow(/hunter2/);
    expect(() => readConfig({ CATNAP_API_KEY: 'hunter2' }, user)).not.toThrow(/hunter2/);
  });

  it('treats an empty value as unset', () => {
    expect(readConfig({ CATNAP_HTTP_PORT: '', CATNAP_API_KEY: '' }, user).httpPort).toBe(7070);
  });

  it('documents each variable once', () => {
    const names = settingDocs.map(([name]) => name);
    expect(new Set(names).size).toBe(names.length);
  });
});

it.each([
  ['127.0.0.1', 'http://127.0.0.1:7070'],
  ['0.0.0.0', 'http://127.0.0.1:7070'],
  ['::', 'http://[::1]:7070'],
  ['fd00::5', 'http://[fd00::5]:7070'],
])('a server bound to %s is reached at %s from its own machine', (bind, url) => {
  expect(localUrl({ bind, httpPort: 7070 })).toBe(url);
});
