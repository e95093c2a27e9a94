import { expect, it } from 'vitest';
import { scriptControlPlane } from '../../../test/helpers/proxy.ts';
import { CatnapError } from '../../lib/errors.ts';
import { buildVerifier, deriveKeys, parseVerifier } from '../../lib/scram-verifier.ts';
import type { DialAddress } from '../kit/control-plane.ts';
import { defaultLimits } from '../kit/limits.ts';
import { connectToCompute } from './session.ts';
import { createWaker } from './wake.ts';

it('asks where the compute is as soon as its address leads nowhere, and tries no other time there', async () => {
  const text = buildVerifier('right', undefined, 1);
  const verifier = parseVerifier(text);
  if (!verifier) throw new Error('no verifier');
  // No connection can be made to a group: the kernel says that there is no way, as it does for a pod that is gone.
  const nowhere: DialAddress = { kind: 'tcp', host: '224.0.0.1', port: 5432 };
  let asked = 0;
  const wake = async () => {
    asked += 1;
    if (asked === 3) throw new CatnapError('unavailable', 'asked a third time');
    return nowhere;
  };
  const limits = { ...defaultLimits, dialAttempts: 1_000, dialRetryMs: 60_000 };
  const connecting = connectToCompute({
    identity: {
      route: { endpointId: 'ep-a', pooled: false },
      role: 'ann',
      keys: await deriveKeys('right', verifier.salt, verifier.iterations),
      verifier,
      facts: { verifier: text, disabled: false, allowedIps: [] },
    },
    parameters: new Map([['user', 'ann']]),
    waker: createWaker(scriptControlPlane({ wake }), limits.wakeMs),
    limits,
    signal: new AbortController().signal,
  });
  await expect(connecting).rejects.toThrow('asked a third time');
});
