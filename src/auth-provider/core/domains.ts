/**
 * Trusted domains: where codes and redirects may go. A domain is a scheme and a host, with an optional port; `*`
 * matches part of one label, `**` any number of labels.
 */
import { known, schemaError } from '../http/errors.ts';
import type { DomainRow } from '../statements/domains.ts';
import type { ProjectRow } from '../statements/projects.ts';

const lengthMax = 300;
const wildcardsMax = 3;
/** The limit for any name that DNS can resolve. */
const hostLengthMax = 253;
const domainPattern = /^https?:\/\/(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9*_-]+(\.[A-Za-z0-9*_-]+)*)(:\d{1,5})?$/;

export function requireDomain(text: string, field: string): string {
  if (text.length > lengthMax || !domainPattern.test(text) || !isPort(text)) {
    throw schemaError(`${field} must be http:// or https://, a host and perhaps a port, and nothing behind it`);
  }
  // Each one makes matching slower.
  if ((text.match(/\*+/g) ?? []).length > wildcardsMax) {
    throw schemaError(`${field} must not have more than ${wildcardsMax} wildcards`);
  }
  return text;
}

function isPort(text: string): boolean {
  const port = /:(\d+)$/.exec(text)?.[1];
  return port === undefined || Number(port) <= 65_535;
}

/** Throws unless the project trusts the URL: codes that sign a user in are sent to it. */
export function requireTrustedUrl(project: ProjectRow, domains: readonly DomainRow[], text: string): void {
  if (!isTrustedUrl(project, domains, text)) {
    throw known('REDIRECT_URL_NOT_WHITELISTED', 'The URL is not in a trusted domain of this project.');
  }
}

export function isTrustedUrl(
  project: Pick<ProjectRow, 'allowLocalhost'>,
  domains: readonly Pick<DomainRow, 'domain'>[],
  text: string,
): boolean {
  if (!URL.canParse(text)) return false;
  const url = new URL(text);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return false;
  // These make a link look as if it led elsewhere.
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
  return url.hostname.length <= hostLengthMax && matchesHost(url.hostname, host.toLowerCase());
}

/**
 * Tracks every index at which the pattern so far can end. A regular expression would try them one after the other,
 * which takes minutes for a host name crafted for that.
 */
function matchesHost(host: string, pattern: string): boolean {
  let ends = new Set([0]);
  for (const part of pattern.match(/\*+|[^*]+/g) ?? []) {
    const next = new Set<number>();
    for (const end of ends) {
      if (!part.startsWith('*')) {
        if (host.startsWith(part, end)) next.add(end + part.length);
        continue;
      }
      // An index that another end has already reached was continued from there.
      for (let at = end; at <= host.length && !next.has(at); at += 1) {
        next.add(at);
        if (part === '*' && host[at] === '.') break;
      }
    }
    ends = next;
  }
  return ends.has(host.length);
}
