import { expect, test } from 'vitest';
import { machineOfTests } from '../../../test/helpers/machine.ts';
import type { ApiConfig } from '../kit/parts.ts';
import { requireNetwork } from './good-network.ts';

const machine = (facts: Partial<ApiConfig>) => ({ ...machineOfTests, ...facts }) as ApiConfig;
const [on, off] = [{ allow_outbound_connections: true }, { allow_outbound_connections: false }];

test('what the machine can do is taken, and what is not asked for', () => {
  for (const asked of [on, off, {}, undefined]) expect(() => requireNetwork(machine({}), asked)).not.toThrow();
});

test('where computes have the network of the machine, it cannot be taken from them', () => {
  const without = machine({ networkProblem: 'Catnap does not run as root' });
  expect(() => requireNetwork(without, on)).not.toThrow();
  expect(() => requireNetwork(without, off)).toThrow(
    'body.project.settings.allow_outbound_connections must be true: ' +
      'computes here have the network of the machine (Catnap does not run as root)',
  );
});

test('without the program that carries the traffic there is no way out', () => {
  const closed = machine({ outsideProblem: 'slirp4netns is not installed on the machine' });
  expect(() => requireNetwork(closed, off)).not.toThrow();
  expect(() => requireNetwork(closed, on)).toThrow('must be false: slirp4netns is not installed on the machine');
});
