import { describe, expect, it } from 'vitest';
import { CatnapError } from '../../lib/errors.ts';
import { buildVerifier, parseVerifier } from '../../lib/scram-verifier.ts';
import { type Identity, passwordWrong } from '../client/authenticate.ts';
import { ProvenKeys } from './proven-keys.ts';

const { signal } = new AbortController();

function identity(password: string, role = 'ann', endpointId = 'ep-a'): Identity {
  const verifier = parseVerifier(buildVerifier(password, undefined, 1));
  if (!verifier) throw new Error('no verifier');
  const { storedKey, serverKey } = verifier;
  return {
    route: { endpointId, pooled: true },
    role,
    verifier,
    keys: { clientKey: Buffer.alloc(32), storedKey, serverKey },
    facts: { verifier: null, disabled: false, allowedIps: [] },
  };
}

/** A server that accepts one identity, and remembers which ones were tried. */
function server(accepted: () => Identity) {
  const tried: Identity[] = [];
  const connect = async (by: Identity): Promise<Identity> => {
    tried.push(by);
    if (by !== accepted()) throw passwordWrong(by.role);
    return by;
  };
  return { tried, connect };
}

describe('a pool', () => {
  const before = identity('before');
  const after = identity('after');

  it('connects with its own keys, and with newer ones once a client has proved them', async () => {
    let accepted = before;
    const { tried, connect } = server(() => accepted);
    const keys = new ProvenKeys();
    const pool = keys.use(before, connect);
    expect(await pool.connect(signal)).toBe(before);
    accepted = after;
    await expect(pool.connect(signal)).rejects.toMatchObject({ kind: 'password_wrong' });
    keys.record(after);
    expect(await pool.connect(signal)).toBe(after);
    expect(tried).toEqual([before, before, after]);
  });

  it('connects with its own keys when the newest proof was of an older password', async () => {
    const { tried, connect } = server(() => after);
    const keys = new ProvenKeys();
    const pool = keys.use(after, connect);
    keys.record(before);
    expect(await pool.connect(signal)).toBe(after);
    expect(await pool.connect(signal)).toBe(after);
    expect(tried).toEqual([before, after, after]);
  });

  it('never connects with the keys of another role or endpoint', async () => {
    const { tried, connect } = server(() => before);
    const keys = new ProvenKeys();
    const pool = keys.use(before, connect);
    for (const other of [identity('x', 'ben'), identity('x', 'ann', 'ep-b')]) {
      keys.use(other, connect);
      keys.record(other);
    }
    await pool.connect(signal);
    expect(tried).toEqual([before]);
  });

  it('does not take another failure for a changed password', async () => {
    const keys = new ProvenKeys();
    let tries = 0;
    const pool = keys.use(before, async () => {
      tries += 1;
      throw new CatnapError('unavailable', 'no');
    });
    keys.record(after);
    await expect(pool.connect(signal)).rejects.toThrow('no');
    expect(tries).toBe(1);
  });

  it('leaves no keys behind when it is the last of its role', async () => {
    const { tried, connect } = server(() => before);
    const keys = new ProvenKeys();
    keys.use(before, connect).release();
    keys.record(after);
    await keys.use(before, connect).connect(signal);
    expect(tried).toEqual([before]);
  });
});
