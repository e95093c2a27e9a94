/** Shorthands for running commands of the domain in tests. */

import { type CommandScope, commandScope } from '../../src/core/context.ts';
import { type CreatedProject, createProject } from '../../src/core/project-create.ts';
import type { TestCore } from './core.ts';

export function command<T>({ core }: Pick<TestCore, 'core'>, work: (scope: CommandScope) => Promise<T>): Promise<T> {
  return core.database.transaction((tx) => work(commandScope(core, tx)));
}

export function makeProject(test: Pick<TestCore, 'core' | 'caller'>, name = 'test'): Promise<CreatedProject> {
  return command(test, (scope) =>
    createProject(scope, test.caller, { name, organizationId: null, endpointDefaults: {}, annotation: {} }),
  );
}
