/**
 * Which OpenID issuers this installation uses in place of, or beside, the well-known ones: `google=https://…,corp=…`.
 * Only the operator names them, because Catnap sends requests to them.
 */

/** As in the published API. */
const idPattern = /^[a-z0-9-]{1,60}$/;

export type OauthIssuers = Readonly<Record<string, string>>;

/** Undefined for a text that is none. */
export function parseOauthIssuers(text: string): OauthIssuers | undefined {
  const found: Record<string, string> = {};
  for (const entry of text.split(',').map((part) => part.trim())) {
    const at = entry.indexOf('=');
    const [id, url] = [entry.slice(0, at), entry.slice(at + 1)];
    if (at < 1 || !idPattern.test(id) || Object.hasOwn(found, id) || !isIssuer(url)) return undefined;
    found[id] = url.replace(/\/+$/, '');
  }
  return found;
}

function isIssuer(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const url = new URL(text);
  const isBare = url.search === '' && url.hash === '' && url.username === '' && url.password === '';
  return isBare && (url.protocol === 'https:' || isWebLoopback(text));
}

/** Plain HTTP that never leaves this machine. */
export function isWebLoopback(text: string): boolean {
  const { protocol, hostname } = new URL(text);
  return protocol === 'http:' && /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/.test(hostname);
}
