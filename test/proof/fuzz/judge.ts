/** What is wrong with a reply: a failure of the server, internal text, or a refusal that does not name the field. */
import { validateReply } from '../../helpers/contract.ts';
import type { FuzzRequest } from './request.ts';

export interface FuzzReply {
  readonly status: number;
  readonly contentType: string;
  readonly text: string;
}

/** Text of the inside: of stacks, of the system database, of the machine. */
const internal =
  /\n\s+at |node_modules|\.(ts|js|mjs):\d|violates |duplicate key|relation "|column "|syntax error at|ECONN|EPIPE|ENOENT|\[object |undefined|Cannot (read|set)|is not a function|\bNaN\b|postgres\.js|FST_ERR/;

/** Of these, the reason is in the message; a defect in Catnap is never one of them. */
const allowedFailures: Readonly<Record<number, RegExp>> = {
  501: /./,
};

/** Null for a good reply. */
export function judge(request: FuzzRequest, reply: FuzzReply): string | null {
  const { status, text } = reply;
  const body = parse(reply);
  const isApi = request.url.startsWith('/api/v2/') && request.operation.path.startsWith('/api/v2/');
  const message = messageOf(body, text);
  if (status >= 500 && allowedFailures[status]?.test(message) !== true) return `a status of ${status}`;
  if (status >= 400 && !request.url.startsWith('/stack')) {
    const found = internal.exec(message)?.[0];
    if (found !== undefined && !sent(request).includes(found)) return `internal text in the message: ${found}`;
  }
  if (isApi && body === undefined && status >= 400 && request.method !== 'HEAD') return 'an error that is no JSON';
  if (isApi && body !== undefined) {
    try {
      validateReply(request.method, request.url, status, body);
    } catch (error) {
      return `not as published: ${error instanceof Error ? error.message : error}`;
    }
  }
  if (isApi && status === 400 && request.method !== 'HEAD') return judgeRefusal(request, message);
  return null;
}

/** A refusal says what is wrong, and which attribute of the body where the body as a whole is well formed. */
function judgeRefusal({ changed }: FuzzRequest, message: string): string | null {
  if (message.trim().length < 10) return 'a refusal that says nothing';
  const isAboutBody = /^invalid request: (a key of )?body\b/.test(message);
  const isWhole = changed === null || changed === 'root';
  return isWhole || !isAboutBody || /body[.[]/.test(message) ? null : 'a refusal that names no attribute';
}

function messageOf(body: unknown, text: string): string {
  if (typeof body === 'object' && body !== null && 'message' in body) return String(body.message);
  return text.slice(0, 2_000);
}

export function parse({ contentType, text }: FuzzReply): unknown {
  if (!contentType.startsWith('application/json') || text === '') return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function sent({ url, payload, headers }: FuzzRequest): string {
  let path = url;
  try {
    path = decodeURIComponent(url);
  } catch {
    // As it was sent.
  }
  return `${url} ${path} ${payload?.toString() ?? ''} ${Object.values(headers).join(' ')}`;
}

/** The request as a person would repeat it. */
export function show({ method, url, headers, payload, kind, changed }: FuzzRequest): string {
  const body = payload === undefined ? '' : ` ${payload.toString('latin1').slice(0, 600)}`;
  const shown = Object.entries(headers).filter(([name]) => name !== 'authorization' || kind === 'header');
  return `[${kind}${changed === null ? '' : ` at ${changed}`}] ${method} ${url.slice(0, 500)} ${JSON.stringify(shown)}${body}`;
}
