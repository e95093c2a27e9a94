/**
 * Branded ids and their generators. A plain string becomes an id only here. Shapes follow what clients check: neonctl
 * distinguishes an id from a name by `^br-[a-z0-9]+-[a-z0-9]+-[a-z0-9]+$`, and every id fits `^[a-z0-9-]{1,60}$`.
 */
import { randomBytes, randomInt, randomUUID } from 'node:crypto';
import { adjectives, nouns } from './words.ts';

type Brand<Name extends string> = string & { readonly __brand: Name };

export type ProjectId = Brand<'ProjectId'>;
export type BranchId = Brand<'BranchId'>;
export type EndpointId = Brand<'EndpointId'>;
export type OrganizationId = Brand<'OrganizationId'>;
export type OperationId = Brand<'OperationId'>;
export type UserId = Brand<'UserId'>;
export type SnapshotId = Brand<'SnapshotId'>;
export type SavedQueryId = Brand<'SavedQueryId'>;
export type WebhookId = Brand<'WebhookId'>;

export const idPattern = '^[a-z0-9-]{1,60}$';
export const uuidPattern = '^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$';
const uuid = new RegExp(uuidPattern);

export const isUuid = (text: string) => uuid.test(text);

const lowerAlphanumeric = 'abcdefghijklmnopqrstuvwxyz0123456789';
const alphanumeric = `${lowerAlphanumeric}ABCDEFGHIJKLMNOPQRSTUVWXYZ`;

export const asProjectId = (text: string) => text as ProjectId;
export const asBranchId = (text: string) => text as BranchId;
export const asEndpointId = (text: string) => text as EndpointId;
export const asOrganizationId = (text: string) => text as OrganizationId;
export const asOperationId = (text: string) => text as OperationId;
export const asUserId = (text: string) => text as UserId;
export const asSnapshotId = (text: string) => text as SnapshotId;
export const asSavedQueryId = (text: string) => text as SavedQueryId;
export const asWebhookId = (text: string) => text as WebhookId;

export const newProjectId = () => asProjectId(`${wordPair()}-${digits(8)}`);
export const newBranchId = () => asBranchId(`br-${wordPair()}-${randomText(8, lowerAlphanumeric)}`);
export const newEndpointId = () => asEndpointId(`ep-${wordPair()}-${randomText(8, lowerAlphanumeric)}`);
export const newSnapshotId = () => asSnapshotId(`snap-${wordPair()}-${randomText(8, lowerAlphanumeric)}`);
export const newSavedQueryId = () => asSavedQueryId(`query-${randomText(16, lowerAlphanumeric)}`);
export const newWebhookId = () => asWebhookId(`hook-${randomText(16, lowerAlphanumeric)}`);
/** The compute of a look into the past; it has no row among the endpoints. */
export const newLookId = () => asEndpointId(`look-${randomText(12, lowerAlphanumeric)}`);
export const isLookId = (id: string) => id.startsWith('look-');
export const newOrganizationId = () => asOrganizationId(`org-${wordPair()}-${digits(8)}`);
export const newOperationId = () => asOperationId(randomUUID());
export const newUserId = () => asUserId(randomUUID());

/** 60 characters of 36: 310 random bits. */
export const newApiKeyToken = () => `napi_${randomText(60, lowerAlphanumeric)}`;
/** 20 characters of 62: 119 random bits, for the passwords of tenants' roles. */
export const newRolePassword = () => `npg_${randomText(20, alphanumeric)}`;
/** For logins that no person ever types. */
export const newSecret = () => randomBytes(32).toString('base64url');

function wordPair(): string {
  return `${pick(adjectives)}-${pick(nouns)}`;
}

function pick(words: readonly string[]): string {
  return words[randomInt(words.length)] ?? 'calm';
}

function digits(count: number): string {
  return String(randomInt(10 ** (count - 1), 10 ** count));
}

function randomText(length: number, alphabet: string): string {
  let text = '';
  for (let i = 0; i < length; i++) text += alphabet[randomInt(alphabet.length)];
  return text;
}
