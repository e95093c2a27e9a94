import { expect, it } from 'vitest';
import { asEndpointId } from '../lib/ids.ts';
import { connectionDetails, connectionUri, endpointHostname, proxyHostname } from './connection-uri.ts';

const endpointId = asEndpointId('ep-calm-lake-abcd1234');
const target = { endpointId, databaseName: 'my db', roleName: 'ann', password: 'p@ss', pooled: false };
const local = { bind: '127.0.0.1', domain: 'localhost', region: 'local', pgPort: 7432 };

it('names the endpoint in options on the default domain', () => {
  expect(connectionUri(local, target)).toBe(
    'postgresql://ann:p%40ss@localhost:7432/my%20db?options=endpoint%3Dep-calm-lake-abcd1234',
  );
  expect(connectionUri({ ...local, pgPort: 5432 }, { ...target, pooled: true })).toBe(
    'postgresql://ann:p%40ss@localhost/my%20db?options=endpoint%3Dep-calm-lake-abcd1234-pooler',
  );
});

it('asks for TLS on the default domain where the port takes nothing else', () => {
  for (const bind of ['0.0.0.0', '::', '10.1.2.3']) {
    expect(connectionUri({ ...local, bind }, target)).toBe(
      'postgresql://ann:p%40ss@localhost:7432/my%20db?options=endpoint%3Dep-calm-lake-abcd1234' +
        '&sslmode=require&channel_binding=require',
    );
  }
  expect(connectionUri({ ...local, bind: '::1' }, target)).not.toContain('sslmode');
});

it('names the endpoint in the host on a real domain', () => {
  const real = { bind: '0.0.0.0', domain: 'db.example.com', region: 'eu-1', pgPort: 5432 };
  expect(connectionUri(real, target)).toBe(
    'postgresql://ann:p%40ss@ep-calm-lake-abcd1234.eu-1.db.example.com/my%20db?sslmode=require&channel_binding=require',
  );
});

it('puts a port in hosts only when it is not the usual one', () => {
  expect(endpointHostname(local, endpointId)).toBe('ep-calm-lake-abcd1234.local.localhost:7432');
  expect(endpointHostname({ ...local, pgPort: 5432 }, endpointId)).toBe('ep-calm-lake-abcd1234.local.localhost');
  expect(proxyHostname(local)).toBe('local.localhost:7432');
  expect(connectionDetails(local, target).poolerHostname).toBe('ep-calm-lake-abcd1234-pooler.local.localhost:7432');
});
