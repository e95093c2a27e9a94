import { describe, expect, it } from 'vitest';
import { forwardedParameters, withClaims } from '../compute/session.ts';
import {
  asksForLink,
  chooseRoute,
  endpointOfOptions,
  endpointOfServerName,
  momentOfOptions,
  parsePasswordForm,
  stripOptions,
} from './route.ts';

const names = { domain: 'db.example.com', region: 'local' };

describe('the server name', () => {
  it.each([
    ['ep-a-b-1.local.db.example.com', 'ep-a-b-1'],
    ['EP-A.Local.DB.example.com', 'ep-a'],
    ['ep-a.local.db.example.com.', 'ep-a'],
    ['ep-a.c-2.local.db.example.com', 'ep-a'],
    ['ep-a.db.example.com', 'ep-a'],
    ['db.example.com', null],
    ['local.db.example.com', null],
    ['api.local.db.example.com', null],
    ['apiauth.local.db.example.com', null],
    ['pg.local.db.example.com', null],
    ['pg.db.example.com', null],
    ['ep-a.other.com', null],
    ['ep-a.xdb.example.com', null],
    ['localhost', null],
    ['.db.example.com', null],
  ])('%s means %s', (serverName, endpoint) => {
    expect(endpointOfServerName(serverName, names)).toBe(endpoint);
  });
});

describe('a client that names no endpoint', () => {
  it.each([
    ['pg.db.example.com', 'my app', true],
    ['PG.local.db.example.com', undefined, true],
    ['pg.other.com', 'my app', false],
    ['db.example.com', 'my app', false],
    ['db.example.com', 'psql', true],
    ['localhost', 'psql', true],
    ['localhost', undefined, false],
    [null, 'psql', false],
  ])('at %s as %s gets a link: %s', (serverName, applicationName, expected) => {
    expect(asksForLink(serverName, applicationName, names)).toBe(expected);
  });
});

describe('the options', () => {
  it.each([
    ['endpoint=ep-a', 'ep-a'],
    ['project=ep-a', 'ep-a'],
    ['-c search_path=x endpoint=ep-a -c y=z', 'ep-a'],
    ['-c endpoint=ep-a', 'ep-a'],
    ['  endpoint=ep-a\t', 'ep-a'],
    ['endpoint\\=ep-a', 'ep-a'],
    ['-cendpoint=ep-a', null],
    ['endpoint=ep-a endpoint=ep-a', null],
    ['endpoint=ep-a project=ep-b', null],
    ['-c search_path=a\\ endpoint=ep-a', null],
    ['', null],
    ['endpoint', null],
  ])('%j name %s', (options, endpoint) => {
    expect(endpointOfOptions(options)).toBe(endpoint);
  });

  it.each([
    ['endpoint=ep-a', null],
    ['endpoint=ep-a -c search_path=x', '-c search_path=x'],
    ['-c endpoint=ep-a -c search_path=x', '-c search_path=x'],
    ['-c search_path=a\\ b project=ep-a', '-c search_path=a\\ b'],
    ['neon_endpoint_type:read_write catnap_x:1 --work_mem=1MB', '--work_mem=1MB'],
    ['endpoint=ep-a endpoint=ep-b', null],
    ['-c neon.x=1', '-c neon.x=1'],
    ['-cendpoint=x', '-cendpoint=x'],
    ['  ', null],
  ])('%j leave %j for the compute', (options, left) => {
    expect(stripOptions(options)).toBe(left);
  });

  it.each([
    ['neon_lsn:0/16B3748', { lsn: '0/16B3748' }],
    ['-c x=y neon_timestamp:2026-01-01T00:00:00Z endpoint=ep-a', { timestamp: '2026-01-01T00:00:00Z' }],
    ['-c neon_timestamp=2026-01-01\\ 00:00:00Z', { timestamp: '2026-01-01 00:00:00Z' }],
    ['neon_lsn:', { lsn: '' }],
    ['neon_lsn:0/1 neon_timestamp:now', { lsn: '0/1', timestamp: 'now' }],
    ['neon_endpoint_type:read_only', null],
    ['-c application_name=neon_lsn', null],
    ['-c search_path=a\\ neon_lsn:0/1', null],
  ])('%j ask for the moment %j', (options, moment) => {
    expect(momentOfOptions(options)).toEqual(moment);
  });

  it('refuses two moments of one kind', () => {
    expect(() => momentOfOptions('neon_lsn:0/1 neon_lsn:0/2')).toThrow('neon_lsn is given twice');
  });
});

describe('chooseRoute', () => {
  const sni = (label: string) => `${label}.local.db.example.com`;
  it.each([
    [sni('ep-a'), undefined, { endpointId: 'ep-a', pooled: false }],
    [sni('ep-a-pooler'), undefined, { endpointId: 'ep-a', pooled: true }],
    [sni('ep-a-local-proxy'), undefined, { endpointId: 'ep-a', pooled: false }],
    [null, 'endpoint=ep-a-pooler', { endpointId: 'ep-a', pooled: true }],
    [sni('ep-a'), 'endpoint=ep-a', { endpointId: 'ep-a', pooled: false }],
    [sni('ep-a-pooler'), 'endpoint=ep-a', { endpointId: 'ep-a', pooled: true }],
    [sni('ep-a'), 'endpoint=ep-b endpoint=ep-c', { endpointId: 'ep-a', pooled: false }],
    ['localhost', 'endpoint=ep-a', { endpointId: 'ep-a', pooled: false }],
    ['localhost', undefined, null],
    [null, '-c search_path=x', null],
  ])('%s with options %s', (serverName, options, route) => {
    expect(chooseRoute(serverName, options, names)).toEqual(route);
  });

  it('refuses two different answers', () => {
    expect(() => chooseRoute(sni('ep-a'), 'endpoint=ep-b', names)).toThrow(
      "Inconsistent project name inferred from SNI ('ep-a') and project option ('ep-b').",
    );
  });

  it.each(['ep_a', 'ep-ä', "x'y", ''])('refuses the id %j', (id) => {
    expect(() => chooseRoute(null, `endpoint=${id}`, names)).toThrow(
      `Project name ('${id}') must contain only alphanumeric characters and hyphen.`,
    );
  });
});

describe('the password form', () => {
  it.each([
    ['endpoint=ep-a;secret', 'ep-a', 'secret'],
    ['endpoint=ep-a$secret', 'ep-a', 'secret'],
    ['project=ep-a;secret', 'ep-a', 'secret'],
    ['endpoint=ep-a;se;c$ret', 'ep-a', 'se;c$ret'],
    ['endpoint=ep-a$se$cret', 'ep-a', 'se$cret'],
    ['endpoint=ep-a;', 'ep-a', ''],
    ['endpoint=ep-a-pooler;x', 'ep-a', 'x'],
  ])('%j', (text, endpointId, password) => {
    const form = parsePasswordForm(Buffer.from(text));
    expect(form?.route.endpointId).toBe(endpointId);
    expect(form?.password.toString()).toBe(password);
  });

  it('keeps the password verbatim, byte for byte', () => {
    const form = parsePasswordForm(Buffer.concat([Buffer.from('endpoint=ep-a;'), Buffer.from([0xff, 0x20])]));
    expect(form?.password).toEqual(Buffer.from([0xff, 0x20]));
  });

  it('takes the first ; as the end of the id even when a $ comes before', () => {
    expect(() => parsePasswordForm(Buffer.from('endpoint=ep-a$x;y'))).toThrow("Project name ('ep-a$x')");
  });

  it.each(['secret', '', 'endpoint=ep-a', 'Endpoint=ep-a;x', 'user=x;y'])('%j is none', (text) => {
    expect(parsePasswordForm(Buffer.from(text))).toBeNull();
  });
});

describe('forwardedParameters', () => {
  it('passes on everything but what was meant for the proxy', () => {
    const parameters = new Map([
      ['user', 'ann'],
      ['channel_binding', 'require'],
      ['application_name', 'psql'],
      ['options', 'endpoint=ep-a -c geqo=off'],
    ]);
    expect([...forwardedParameters(parameters)]).toEqual([
      ['user', 'ann'],
      ['application_name', 'psql'],
      ['options', '-c geqo=off'],
    ]);
    expect(forwardedParameters(new Map([['options', 'endpoint=ep-a']])).has('options')).toBe(false);
  });
});

describe('withClaims', () => {
  it('sends the claims last, and none of the client’s own', () => {
    const own = new Map([
      ['Request.JWT.claims', 'forged'],
      ['options', '-c request.jwt.claims=forged'],
    ]);
    expect([...withClaims(own, '')]).toEqual([
      ['options', '-c request.jwt.claims=forged'],
      ['request.jwt.claims', ''],
    ]);
    expect(withClaims(new Map([['request.jwt.claims', 'forged']]), '{}').get('request.jwt.claims')).toBe('{}');
  });
});
