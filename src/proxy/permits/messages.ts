/**
 * The messages between the proxies and the broker of their permits (the scheme is described in `budget.ts`), and the
 * check of what a proxy sends.
 */

/** What a permit is for: a connection to a server, or the connection of a pooled client. They are counted apart. */
export const permitKinds = ['servers', 'clients'] as const;
export type PermitKind = (typeof permitKinds)[number];

/** The member of a budget that stands for all sessions without a pool. */
export const directMember = '';

interface Subject {
  readonly permit: PermitKind;
  readonly endpointId: string;
}

/** From a proxy to the broker. */
export type PermitRequest = Subject &
  (
    | {
        /** That many more are wanted; a negative count withdraws earlier requests. */
        readonly request: 'want';
        readonly member: string;
        readonly count: number;
        /** Null while this proxy does not know it. */
        readonly limit: number | null;
      }
    | { readonly request: 'return'; readonly member: string; readonly count: number }
    /** This proxy has learned how many permits the endpoint has in all. */
    | { readonly request: 'limit'; readonly limit: number }
  );

/** From the broker to a proxy. */
export type PermitAnswer = Subject &
  (
    | { readonly answer: 'grant'; readonly member: string; readonly count: number; readonly limit: number | null }
    | { readonly answer: 'limit'; readonly limit: number }
    /** Replaces the shortage that was reported before. */
    | { readonly answer: 'shortage'; readonly shortage: Shortage }
  );

/** Permits that are wanted and cannot be granted now. */
export interface Shortage {
  /** Because the endpoint has none left. */
  readonly endpoint: UnmetDemand;
  /** Because the pool of that name already has as many as one pool may have. */
  readonly pools: Readonly<Record<string, UnmetDemand>>;
}

export interface UnmetDemand {
  readonly count: number;
  /** How many connections a busy pool of one proxy may keep while others wait. */
  readonly fairShare: number;
}

export const noShortage: Shortage = { endpoint: { count: 0, fairShare: 1 }, pools: {} };

/** A proxy's connection to the broker. */
export interface PermitChannel {
  send(request: PermitRequest): void;
  onAnswer(listener: (answer: PermitAnswer) => void): void;
}

const nameLengthMax = 200;
const countMax = 100_000;

/** A proxy reads bytes from unauthenticated clients, so the parent does not trust the messages that it sends. */
export function isPermitRequest(message: unknown): message is PermitRequest {
  if (!isObject(message) || !permitKinds.some((kind) => kind === message.permit) || !isName(message.endpointId))
    return false;
  if (message.request === 'limit') return isCount(message.limit);
  if (!isName(message.member)) return false;
  if (message.request === 'return') return isCount(message.count);
  const { count, limit } = message;
  return (
    message.request === 'want' &&
    typeof count === 'number' &&
    isCount(Math.abs(count)) &&
    (limit === null || isCount(limit))
  );
}

/** The parent process is trusted; this only separates the broker's answers from the parent's other messages. */
export function isPermitAnswer(message: unknown): message is PermitAnswer {
  return isObject(message) && 'answer' in message && 'permit' in message;
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
