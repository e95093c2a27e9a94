/** Which email addresses and trusted domains are valid, by the rules of the provider. */
import { invalid } from '../lib/errors.ts';

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
