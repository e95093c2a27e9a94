/**
 * Trusted domains: where codes and redirects may go. A domain is a scheme and a host, with a port or not; `*` stands
 * for a part of one label, `**` for any number of labels.
 */
import { known, schemaError } from './http/errors.ts';
import type { DomainRow } from './store/domains.ts';
import type { ProjectRow } from './store/projects.ts';

const lengthMax = 300;
const wildcardsMax = 3;
const domainPattern = /^https?:\/\/(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9*_-]+(\.[A-Za-z0-9*_-]+)*)(:\d{1,5})?$/;

export function requireDomain(text: string, field: string): string {
  if (text.length > lengthMax || !domainPattern.test(text) || !isPort(text)) {
    throw schemaError(`${field} must be http:// or https://, a host and perhaps a port, and nothing behind it`);
  }
  // Each one makes matching slower for a hostile host name.
  if ((text.match(/\*+/g) ?? []).length > wildcardsMax) {
    throw schemaError(`${field} must not have more than ${wildcardsMax} wildcards`);
  }
  return text;
}

function isPort(text: string): boolean {
  const port = /:(\d+)$/.exec(text)?.[1];
  return port === undefined || Number(port) <= 65_535;
}

/** Throws unless the project trusts the place: codes that sign somebody in are sent to it. */
export function requireTrustedUrl(project: ProjectRow, domains: readonly DomainRow[], text: string): void {
  if (!isTrustedUrl(project, domains, text)) {
    throw known('REDIRECT_URL_NOT_WHITELISTED', 'The URL is not in a trusted domain of this project.');
  }
}

export function isTrustedUrl(project: ProjectRow, domains: readonly DomainRow[], text: string): boolean {
  if (!URL.canParse(text)) return false;
  const url = new URL(text);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return false;
  // Parts that make a link look as if it led elsewhere.
  if (url.username !== '' || url.password !== '') return false;
  if (project.allowLocalhost && isLocalhost(url.hostname)) return true;
  return domains.some(({ domain }) => matchesDomain(url, domain));
}

function isLocalhost(host: string): boolean {
  return /^(localhost|.+\.localhost|127(\.\d{1,3}){3}|\[::1\])$/.test(host);
}

function matchesDomain(url: URL, domain: string): boolean {
  const parts = /^(https?:)\/\/(\[[^\]]*\]|[^:]*)(?::(\d+))?$/.exec(domain);
  if (parts === null) return false;
  const [, protocol, host = '', port = ''] = parts;
  const standard = protocol === 'https:' ? '443' : '80';
  if (url.protocol !== protocol || (url.port || standard) !== (port || standard)) return false;
  return hostPattern(host).test(url.hostname);
}

function hostPattern(host: string): RegExp {
  const escaped = host.toLowerCase().replace(/[.[\]\\^$+?(){}|]/g, '\\$&');
  const text = escaped
    .replace(/\*{2,}/g, '\u0000')
    .replaceAll('*', '[^.]*')
    .replaceAll('\u0000', '.*');
  return new RegExp(`^${text}$`);
}
