/** Which email addresses, trusted domains and OAuth providers are valid, by the rules of the provider. */
import { CatnapError, invalid } from '../lib/errors.ts';

const emailLengthMax = 256;
const domainLengthMax = 300;

/** The provider's strict rule, so that a user created here can sign in there. */
export function requireEmail(email: string): string {
  const [, local = '', domain = ''] = /^([^\s@"(),:;<>[\\\]]+)@([^\s@]+)$/.exec(email) ?? [];
  const hasStrayDot = local.startsWith('.') || local.endsWith('.') || local.includes('..');
  const isDomain = /^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])$/i.test(domain);
  if (email.length > emailLengthMax || local === '' || hasStrayDot || !isDomain) {
    throw invalid('invalid request: body.email must be an email address such as ann@example.com');
  }
  return email.toLowerCase();
}

/** Scheme, host and port, as origins are written; labels of the host may be `*`. */
export function requireDomain(domain: string, field: string): string {
  const origin = domain.endsWith('/') ? domain.slice(0, -1) : domain;
  const [, host = '', port = '1'] = /^https?:\/\/([a-z0-9.*-]+|\[[0-9a-f:]+\])(?::(\d{1,5}))?$/i.exec(origin) ?? [];
  if (origin.length > domainLengthMax || host === '' || /^\.|\.\.|\.$/.test(host) || Number(port) > 65_535) {
    throw invalid(`invalid request: ${field} must be an origin such as https://app.example.com, with no path`);
  }
  return origin;
}

/** Shared keys are an offer of the hosted service, with applications of its own at Google and the others. */
export function requireOwnCredentials(given: { readonly client_id?: string; readonly client_secret?: string }): void {
  const missing = (['client_id', 'client_secret'] as const).filter((field) => given[field] === undefined);
  if (missing.length === 0) return;
  throw new CatnapError(
    'unprocessable',
    `body.${missing.join(' and body.')}: shared keys belong to the hosted service; give the client id and secret of ` +
      'an application of your own',
  );
}
