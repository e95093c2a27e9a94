/**
 * What several proxies and the broker of their places say to each other. A place is the right to have one connection:
 * to a server (`servers`), or of a pooled client (`clients`). It is the broker's until it is granted to one proxy, for
 * one member: direct sessions, or one pool.
 */
export const spaces = ['servers', 'clients'] as const;
export type Space = (typeof spaces)[number];

/** Sessions that are no pool's. */
export const directMember = '';

interface Place {
  readonly space: Space;
  readonly endpointId: string;
}

export type PlaceAsk = Place &
  (
    | {
        /** So many more are wanted; a negative number takes back what was said. */
        readonly ask: 'want';
        readonly member: string;
        readonly count: number;
        readonly limit: number | null;
      }
    | { readonly ask: 'return'; readonly member: string; readonly count: number }
    /** How many there are in all; null while nobody knows. */
    | { readonly ask: 'limit'; readonly limit: number }
  );

/** What is wanted and cannot be had: by anybody, and by pools that are at their own bound. */
export interface Shortage {
  readonly any: Lack;
  readonly members: Readonly<Record<string, Lack>>;
}

export interface Lack {
  readonly count: number;
  /** What a busy pool of one proxy may keep meanwhile. */
  readonly share: number;
}

export type PlaceTell = Place &
  (
    | { readonly tell: 'grant'; readonly member: string; readonly count: number; readonly limit: number | null }
    | { readonly tell: 'limit'; readonly limit: number }
    /** In place of the one before. */
    | { readonly tell: 'short'; readonly shortage: Shortage }
  );

export interface PlaceChannel {
  send(ask: PlaceAsk): void;
  onTell(listener: (tell: PlaceTell) => void): void;
}

export const noShortage: Shortage = { any: { count: 0, share: 1 }, members: {} };

const nameLengthMax = 200;
const countMax = 100_000;

/** Proxies talk to strangers, so what they say is looked at. */
export function isPlaceAsk(message: unknown): message is PlaceAsk {
  if (!isObject(message) || !spaces.some((space) => space === message.space) || !isName(message.endpointId))
    return false;
  if (message.ask === 'limit') return isCount(message.limit);
  if (!isName(message.member)) return false;
  if (message.ask === 'return') return isCount(message.count);
  const { count, limit } = message;
  return (
    message.ask === 'want' &&
    typeof count === 'number' &&
    isCount(Math.abs(count)) &&
    (limit === null || isCount(limit))
  );
}

export function isPlaceTell(message: unknown): message is PlaceTell {
  return isObject(message) && 'tell' in message && 'space' in message;
}

function isName(value: unknown): value is string {
  return typeof value === 'string' && value.length <= nameLengthMax;
}

function isCount(value: unknown): value is number {
  return Number.isInteger(value) && Number(value) > 0 && Number(value) <= countMax;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
