/** Whether the place where computes run can give what is asked for: what it cannot is refused before it is recorded. */
import { CatnapError } from '../../lib/errors.ts';
import type { ApiConfig } from '../kit/parts.ts';

interface Asked {
  readonly endpoints?: readonly { readonly type: string }[] | undefined;
  readonly initSource?: string | undefined;
}

export function requireDriver({ cannot }: ApiConfig, { endpoints = [], initSource }: Asked): void {
  const hasReplica = endpoints.some(({ type }) => type === 'read_only');
  const why = (hasReplica && cannot.replicas) || (initSource === 'schema-only' && cannot.empty_copies) || undefined;
  if (why !== undefined) throw new CatnapError('not_supported', why);
}
