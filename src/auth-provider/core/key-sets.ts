/** Creation of key sets: the keys leave in the reply and only their hashes are stored. */
import { randomUUID } from 'node:crypto';
import type { Sql } from '../../db/client.ts';
import { hashToken } from '../../lib/secrets.ts';
import { insertKeySet, type KeySetRow } from '../statements/key-sets.ts';
import { newKey } from './tokens.ts';

export interface KeySetOrder {
  readonly projectId: string;
  readonly description: string;
  readonly expiresAt: Date;
  readonly publishable: boolean;
  readonly secret: boolean;
  readonly admin: boolean;
}

export interface MadeKeySet {
  readonly row: KeySetRow;
  readonly publishableKey: string | undefined;
  readonly secretKey: string | undefined;
  readonly adminKey: string | undefined;
}

const hundredYearsMs = 100 * 365 * 86_400_000;
export const farFuture = (now: Date) => new Date(now.getTime() + hundredYearsMs);

export async function makeKeySet(sql: Sql, order: KeySetOrder): Promise<MadeKeySet> {
  const { projectId, description, expiresAt } = order;
  const publishableKey = order.publishable ? newKey('pck') : undefined;
  const secretKey = order.secret ? newKey('ssk') : undefined;
  const adminKey = order.admin ? newKey('sak') : undefined;
  const hash = (key: string | undefined) => (key === undefined ? null : hashToken(key));
  const lastFour = (key: string | undefined) => (key === undefined ? null : key.slice(-4));
  const row = await insertKeySet(sql, {
    id: randomUUID(),
    projectId,
    description,
    expiresAt,
    publishableHash: hash(publishableKey),
    publishableLastFour: lastFour(publishableKey),
    secretHash: hash(secretKey),
    secretLastFour: lastFour(secretKey),
    adminHash: hash(adminKey),
    adminLastFour: lastFour(adminKey),
  });
  return { row, publishableKey, secretKey, adminKey };
}
