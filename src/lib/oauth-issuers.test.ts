import { describe, expect, test } from 'vitest';
import { readConfig } from './config.ts';
import { parseOauthIssuers } from './oauth-issuers.ts';

describe('issuers of the operator', () => {
  test('are read by provider, with or without a slash behind them', () => {
    const text = 'google=https://id.example.com/, corp=https://login.example.com/realms/main,dev=http://127.0.0.1:9000';
    expect(parseOauthIssuers(text)).toEqual({
      google: 'https://id.example.com',
      corp: 'https://login.example.com/realms/main',
      dev: 'http://127.0.0.1:9000',
    });
    expect(readConfig({}, { isRoot: false }).oauthIssuers).toEqual({});
  });

  test.each([
    'google',
    '=https://a.example',
    'Google=https://a.example',
    'google=a.example',
    'google=ftp://a.example',
    'google=http://a.example',
    'google=http://127.0.0.1.evil.example',
    'google=https://user:password@a.example',
    'google=https://a.example?x=1',
    'google=https://a.example,google=https://b.example',
    'google=https://a.example,',
  ])('%s is refused', (text) => {
    expect(parseOauthIssuers(text)).toBeUndefined();
    const read = () => readConfig({ CATNAP_OAUTH_ISSUERS: text }, { isRoot: false });
    expect(read).toThrow(/CATNAP_OAUTH_ISSUERS.*id=https:\/\/issuer/);
  });
});
