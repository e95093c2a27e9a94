/** When a password that was right is looked up again, against a scripted control plane. */
import { beforeEach, expect, it } from 'vitest';
import { buildVerifier } from '../../lib/scram-verifier.ts';
import type { ControlPlane, LoginFacts } from '../kit/control-plane.ts';
import { createMockVerifiers, type PasswordLogin } from './authenticate.ts';
import { KnownPasswords } from './known-passwords.ts';

let facts: LoginFacts;
let lookups: number;
/** Happens after the look-up has read the facts. */
let duringLookup: () => void;
let report: { change(id: string | null): void; reset(id: string | null): void; access(): void };

const controlPlane: ControlPlane = {
  findLogin: async () => {
    lookups += 1;
    const found = facts;
    duringLookup();
    return found;
  },
  wake: () => Promise.reject(new Error('not asked')),
  findAddress: () => Promise.reject(new Error('not asked')),
  reportActivity: async () => {},
  reportTransfer: async () => {},
  onChange: (listener) => {
    report.change = listener;
  },
  onReset: (listener) => {
    report.reset = listener;
  },
  onAccessChange: (listener) => {
    report.access = listener;
  },
};

const factsFor = (password: string): LoginFacts => ({
  verifier: buildVerifier(password),
  disabled: false,
  allowedIps: [],
});

function login(password: string, endpointId = 'ep-a', pooled = false): PasswordLogin {
  return {
    role: 'ann',
    route: { endpointId, pooled },
    password: Buffer.from(password),
    controlPlane,
    mockVerifier: createMockVerifiers(Buffer.alloc(32)),
    passwordIterations: 10_000,
  };
}

beforeEach(() => {
  facts = factsFor('first');
  lookups = 0;
  duringLookup = () => {};
  report = { change: () => {}, reset: () => {}, access: () => {} };
});

it('a password that was right is not looked up for a moment, and one that was wrong always is', async () => {
  const known = new KnownPasswords(controlPlane, 60_000);
  const first = await known.verify(login('first'));
  const again = await known.verify(login('first', 'ep-a', true));
  expect(lookups).toBe(1);
  expect(again).toEqual({ ...first, route: { endpointId: 'ep-a', pooled: true } });
  for (const _ of [1, 2]) await expect(known.verify(login('wrong'))).rejects.toThrow('password authentication failed');
  expect(lookups).toBe(3);
  await expect(known.verify(login('first', 'ep-b'))).resolves.toBeDefined();
  expect(lookups).toBe(4);
});

it('a new password works at once, and the old one until the moment is over', async () => {
  const known = new KnownPasswords(controlPlane, 60_000);
  await known.verify(login('first'));
  facts = factsFor('second');
  await known.verify(login('second'));
  await known.verify(login('first'));
  const forgetful = new KnownPasswords(controlPlane, 0);
  await forgetful.verify(login('second'));
  facts = factsFor('third');
  await expect(forgetful.verify(login('second'))).rejects.toThrow('password authentication failed');
});

it.each([
  ['a change of its endpoint', () => report.change('ep-a')],
  ['a change of any endpoint', () => report.change(null)],
  ['a reset of a password', () => report.reset('ep-a')],
  ['a change of access rules', () => report.access()],
])('%s makes it look again', async (_, happen) => {
  const known = new KnownPasswords(controlPlane, 60_000);
  await known.verify(login('first'));
  facts = { ...facts, disabled: true };
  happen();
  expect((await known.verify(login('first'))).facts.disabled).toBe(true);
  facts = factsFor('second');
  happen();
  await expect(known.verify(login('first'))).rejects.toThrow('password authentication failed');
});

it('a change of another endpoint does not, unless the look-up is under way', async () => {
  const known = new KnownPasswords(controlPlane, 60_000);
  duringLookup = () => report.change('ep-b');
  await known.verify(login('first'));
  duringLookup = () => {};
  await known.verify(login('first'));
  expect(lookups).toBe(2);
  report.change('ep-b');
  await known.verify(login('first'));
  expect(lookups).toBe(2);
});

it('a branch that is named is looked at again when its compute changes', async () => {
  facts = { ...facts, endpointId: 'ep-a' };
  const known = new KnownPasswords(controlPlane, 60_000);
  await known.verify(login('first', 'br-a'));
  report.change('ep-a');
  await known.verify(login('first', 'br-a'));
  expect(lookups).toBe(2);
});

it('the password is hashed again only if the role has another verifier', async () => {
  const known = new KnownPasswords(controlPlane, 0);
  const first = await known.verify(login('first'));
  expect((await known.verify(login('first'))).keys).toBe(first.keys);
  facts = factsFor('first');
  const other = await known.verify(login('first'));
  expect(other.keys).not.toBe(first.keys);
  expect(other.verifier).not.toEqual(first.verifier);
});
