/**
 * Which installation writes to a prefix. A second one is refused, because the two would remove each other's objects. A
 * copy of an installation's whole home has the same id, so each start also leaves a word of its own: an uploader that
 * finds another's word has been replaced, and stops.
 */
import { randomUUID } from 'node:crypto';
import { text } from 'node:stream/consumers';
import { claimKey } from './layout.ts';
import { NoSuchObjectError, ObjectExistsError, type ObjectStore } from './store/object-store.ts';

export interface Claim {
  readonly format: number;
  readonly installationId: string;
  /** The key that objects are sealed with. */
  readonly keyId: string;
  /** The process that writes, new at each start. */
  readonly writer: string;
  readonly since: string;
}

export interface Claimant {
  readonly installationId: string;
  readonly keyId: string;
}

/** Final until somebody acts: the message says what to do. */
export class ClaimRefusedError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'ClaimRefusedError';
  }
}

/** Another process of the same installation writes now. Claiming again would take the prefix from it: restart first. */
export class ReplacedError extends ClaimRefusedError {}

const format = 1;

/** Null for a prefix that nobody has claimed. */
export async function readClaim(store: ObjectStore): Promise<Claim | null> {
  const body = await store.get(claimKey).then(text, (error: unknown) => {
    if (error instanceof NoSuchObjectError) return null;
    throw error;
  });
  return body === null ? null : parseClaim(store, body);
}

/** Takes the prefix, or takes it over from an earlier start of the same installation. Returns this start's word. */
export async function claimStore(store: ObjectStore, { installationId, keyId }: Claimant): Promise<string> {
  const mine: Claim = { format, installationId, keyId, writer: randomUUID(), since: new Date().toISOString() };
  const bytes = Buffer.from(`${JSON.stringify(mine, null, 2)}\n`);
  const found = await readClaim(store);
  if (found !== null) {
    requireOwn(store, found, { installationId, keyId });
    await store.put(claimKey, bytes);
  } else {
    await store.put(claimKey, bytes, { ifAbsent: true }).catch((error: unknown) => {
      // Somebody was quicker; reading it again says who.
      if (!(error instanceof ObjectExistsError)) throw error;
    });
  }
  await requireWriter(store, mine);
  return mine.writer;
}

/** Fails if the prefix is another's now. Call it again and again while writing. */
export async function requireWriter(store: ObjectStore, mine: Claimant & { readonly writer: string }): Promise<void> {
  const found = await readClaim(store);
  if (found === null)
    throw new ClaimRefusedError(`${store.url}: ${claimKey} is gone; restart Catnap to claim it again`);
  requireOwn(store, found, mine);
  if (found.writer === mine.writer) return;
  throw new ReplacedError(
    `${store.url}: since ${found.since} another Catnap with a copy of this data home writes there; ` +
      'stop one of the two, then restart this one if it is the one that stays',
  );
}

function requireOwn(store: ObjectStore, found: Claim, { installationId, keyId }: Claimant): void {
  if (found.installationId !== installationId) {
    throw new ClaimRefusedError(
      `${store.url} belongs to another installation (${found.installationId}, since ${found.since}); ` +
        'give this one a prefix of its own in CATNAP_BACKUP_URL',
    );
  }
  if (found.keyId !== keyId) {
    throw new ClaimRefusedError(
      `${store.url} was written with another backup key (${found.keyId}): put that key back into the data home, ` +
        'or use a new prefix',
    );
  }
}

function parseClaim(store: ObjectStore, body: string): Claim {
  try {
    const claim: Partial<Claim> = JSON.parse(body);
    const { installationId, keyId, writer, since } = claim;
    const isWhole = [installationId, keyId, writer, since].every((field) => typeof field === 'string');
    if (claim.format === format && isWhole) return claim as Claim;
  } catch {
    // Falls through: not JSON is as foreign as JSON of something else.
  }
  throw new ClaimRefusedError(`${store.url}: ${claimKey} is not a claim that this version of Catnap understands`);
}
