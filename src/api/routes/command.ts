/** How handlers reach core: a read uses the pool, a write is one transaction with its Idempotency-Key. */
import type { FastifyRequest } from 'fastify';
import type { Caller } from '../../core/access.ts';
import { type Idempotency, runCommand, runOutside } from '../../core/command.ts';
import { type CommandScope, readScope, type Scope } from '../../core/context.ts';
import type { ApiParts } from '../kit/parts.ts';
import { callerOf } from '../plugins/auth.ts';

export function ask<T>(
  parts: ApiParts,
  request: FastifyRequest,
  question: (scope: Scope, caller: Caller) => Promise<T>,
): Promise<T> {
  return question(readScope(parts.core), callerOf(request));
}

/** `work` returns the wire JSON: a repeat with the same Idempotency-Key gets that very reply. */
export function write<T extends object>(
  parts: ApiParts,
  request: FastifyRequest,
  work: (scope: CommandScope, caller: Caller) => Promise<T>,
): Promise<T> {
  const caller = callerOf(request);
  return runCommand(parts.core, idempotencyOf(request, caller), async (scope) => {
    await request.requireOwnBranch?.(scope);
    return work(scope, caller);
  });
}

/** For work that calls an outside service: it opens its own transactions, and none is open while it waits. */
export function writeOutside<T extends object>(
  parts: ApiParts,
  request: FastifyRequest,
  work: (scope: Scope, caller: Caller) => Promise<T>,
): Promise<T> {
  const caller = callerOf(request);
  return runOutside(parts.core, idempotencyOf(request, caller), () => work(readScope(parts.core), caller));
}

/** The whole path is part of the scope: the same body sent to two projects is two requests. */
function idempotencyOf(request: FastifyRequest, caller: Caller): Idempotency | null {
  const key = request.headers['idempotency-key'];
  if (request.method !== 'POST' || typeof key !== 'string') return null;
  return { scope: `${caller.keyId} ${request.url}`, key, body: request.bodyText };
}
