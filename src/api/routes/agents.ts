/**
 * The Model Context Protocol over HTTP, at `/mcp`. A message brings a key, and what its tools do are requests to this
 * API with that key, from the address that the message came from: scopes, rate limits, allowed addresses, the log of
 * requests and the last use of the key hold as everywhere. By a key alone: a cookie would let a page of another site
 * that a person has opened speak for that person.
 */
import type { FastifyRequest, InjectOptions } from 'fastify';
import { Type } from 'typebox';
import { CatnapError, invalid } from '../../lib/errors.ts';
import { type AgentMessage, agentAccessLevels } from '../kit/agents.ts';
import type { App } from '../kit/app-type.ts';
import type { ApiParts } from '../kit/parts.ts';
import { type Access, authenticateToken, bearerToken, callerOf } from '../plugins/auth.ts';
import { closed } from '../schemas/common.ts';

/** Calls of one key that are under way in this process: each may hold a statement, or wait for an operation. */
const atOnceMax = 8;
/** A client gives up sooner than this, and what is left over is one of its calls at once. */
const retryAfterSeconds = 1;

const Query = Type.Object(
  {
    access: Type.Optional(Type.Enum([...agentAccessLevels])),
    project: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })),
  },
  closed,
);

export function agentRoutes(app: App, parts: ApiParts, access: Access): void {
  const underWay = new Map<number, number>();
  app.addHook('onRequest', async (request) => {
    const token = bearerToken(request.headers.authorization);
    request.caller = (token === undefined ? undefined : await authenticateToken(request, token, access)) ?? null;
    if (request.caller === null) throw unauthenticated(token !== undefined);
  });
  const options = { config: { isPublic: true }, schema: { hide: true, querystring: Query } };
  app.post('/mcp', options, async (request, reply) => {
    const { access: level = 'read', project } = request.query;
    // The protocol had batches once; a short one could ask for more than fits into memory.
    if (Array.isArray(request.body)) throw invalid('invalid request: body must be one message; batches are not taken');
    const { keyId } = callerOf(request);
    const others = underWay.get(keyId) ?? 0;
    if (others >= atOnceMax) throw tooManyAtOnce();
    underWay.set(keyId, others + 1);
    try {
      const answer = await parts.answerAgent({
        ...messageOf(app, request),
        access: level,
        project,
        version: parts.version,
      });
      return await reply.code(answer.status).headers(answer.headers).send(answer.body);
    } finally {
      const left = (underWay.get(keyId) ?? 1) - 1;
      if (left === 0) underWay.delete(keyId);
      else underWay.set(keyId, left);
    }
  });
}

function messageOf(app: App, request: FastifyRequest): Pick<AgentMessage, 'body' | 'headers' | 'key' | 'fetch'> {
  return {
    body: request.body,
    headers: only(request, ['accept', 'content-type', 'mcp-protocol-version']),
    key: bearerToken(request.headers.authorization) ?? '',
    fetch: (url, init) => askAs(app, request, url, init),
  };
}

/** Within the process: over a socket the request would come from this machine, and not from the agent. */
async function askAs(app: App, request: FastifyRequest, url: string, init: RequestInit): Promise<Response> {
  const { pathname, search } = new URL(url);
  const options: InjectOptions = {
    method: (init.method ?? 'GET') as NonNullable<InjectOptions['method']>,
    url: `${pathname}${search}`,
    remoteAddress: request.ip,
    headers: { ...Object.fromEntries(new Headers(init.headers)), ...only(request, ['host', 'x-forwarded-for']) },
    ...(typeof init.body === 'string' && { payload: init.body }),
  };
  const reply = await app.inject(options);
  return new Response(reply.body, { status: reply.statusCode });
}

function only({ headers }: FastifyRequest, names: readonly string[]): Record<string, string> {
  const given = names.map((name) => [name, headers[name]] as const);
  return Object.fromEntries(given.filter((entry): entry is [string, string] => typeof entry[1] === 'string'));
}

const unauthenticated = (hasKey: boolean) =>
  new CatnapError(
    'unauthenticated',
    hasKey ? 'this API key is wrong, or no longer valid' : 'agents need an API key here: send authorization: Bearer …',
  );

const tooManyAtOnce = () =>
  new CatnapError('rate_limited', `a key may have ${atOnceMax} calls under way here`, { retryAfterSeconds });
