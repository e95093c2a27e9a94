/**
 * What an awake server itself reports about a role's password. Owners change passwords by SQL, and SCRAM must know the
 * verifier before the client sends any proof, so the server is asked at each login: one short statement over a session
 * that all logins share, and that a wake opens ahead of them. An unauthenticated client costs no more than that.
 */
import { createHmac, randomBytes, randomInt } from 'node:crypto';
import { delay } from '../../lib/clock.ts';
import type { ComputeAddress, ServerCatalog } from '../../lib/model.ts';
import { adminLogin, openSession, type Session, withSession } from './admin-session.ts';
import { readCatalog, readVerifier } from './configure.ts';

export interface ServerVerifiers {
  /** Null when the role cannot log in; undefined when the server does not answer in time. */
  read(address: ComputeAddress, adminSecret: string, role: string): Promise<string | null | undefined>;
  /** For an endpoint that does not exist: takes the time of a read, or none, as an endpoint that exists would. */
  pretend(endpointId: string): Promise<void>;
  close(): Promise<void>;
}

/** As long as an idle compute stays awake by default: an ordinary login finds the session open. */
const idleSeconds = 300;
const samplesMax = 64;

export interface VerifierOptions {
  /** After this long without an answer the stored verifier is used. */
  readonly answerMs?: number;
  readonly sessionsMax?: number;
}

export function createServerVerifiers(options: VerifierOptions = {}): ServerVerifiers {
  const { answerMs = 2_000, sessionsMax = 500 } = options;
  // In the order of their last use; an idle one holds no connection.
  const sessions = new Map<string, Session>();
  const samples: number[] = [];
  const secret = randomBytes(32);

  function sessionAt(key: string, address: ComputeAddress, adminSecret: string): Session {
    const limits = { connectSeconds: answerMs / 1_000, statementMs: answerMs, idleSeconds, prepare: true };
    const session = sessions.get(key) ?? openSession(address, adminLogin(adminSecret), limits);
    sessions.delete(key);
    sessions.set(key, session);
    const [oldest] = sessions;
    if (sessions.size > sessionsMax && oldest) drop(...oldest);
    return session;
  }
  function drop(key: string, session: Session): void {
    if (sessions.get(key) === session) sessions.delete(key);
    void session.end({ timeout: 1 }).catch(() => {});
  }
  async function ask(address: ComputeAddress, adminSecret: string, role: string): Promise<string | null> {
    const key = `${JSON.stringify(address)} ${adminSecret}`;
    const session = sessionAt(key, address, adminSecret);
    try {
      return await readVerifier(session, role);
    } catch (error) {
      // A server that ends a session says so before it closes the connection: a second question would go down with it.
      drop(key, session);
      throw error;
    }
  }

  return {
    async read(address, adminSecret, role) {
      const startedAt = performance.now();
      const patience = new AbortController();
      try {
        // Twice: a restart of the server may have ended the session.
        const answer = ask(address, adminSecret, role)
          .catch(() => ask(address, adminSecret, role))
          .catch(() => undefined);
        return await Promise.race([answer, delay(answerMs, patience.signal).then(() => undefined)]);
      } finally {
        patience.abort();
        samples[samples.length < samplesMax ? samples.length : randomInt(samplesMax)] = performance.now() - startedAt;
      }
    },
    async pretend(endpointId) {
      const seemsAwake = (createHmac('sha256', secret).update(endpointId).digest()[0] ?? 0) % 2 === 0;
      const sample = samples[randomInt(samplesMax) % Math.max(1, samples.length)];
      if (seemsAwake && sample !== undefined) await delay(sample);
    },
    async close() {
      await Promise.all([...sessions.values()].map((session) => session.end({ timeout: 1 }).catch(() => {})));
    },
  };
}

/** Of all roles of the tenant's, for somebody who waits for the answer. */
export async function readRoleVerifiers(server: {
  readonly address: ComputeAddress;
  readonly adminSecret: string;
}): Promise<ServerCatalog['roles']> {
  const limits = { connectSeconds: 5, statementMs: 5_000 };
  return (await withSession(server.address, adminLogin(server.adminSecret), readCatalog, limits)).roles;
}
