/**
 * The HTTP application with nothing behind it: for scripts that read what it offers, or run what builds it. Requests
 * that need more than that fail.
 */
import { buildApp } from '../api/app.ts';
import type { App } from '../api/kit/app-type.ts';
import { noConsole } from '../api/kit/console-files.ts';
import type { Core } from '../core/context.ts';
import { openDatabase } from '../db/client.ts';
import { systemClock as clock } from '../lib/clock.ts';
import { readConfig } from '../lib/config.ts';
import { createLogger } from '../lib/log.ts';
import { ProcessRegistry } from '../lib/process-metrics.ts';
import { createSecretBox } from '../lib/secrets.ts';
import { makeProviders } from './auth-clients.ts';
import { authProviderParts } from './auth-provider.ts';

export async function buildIdleApi(): Promise<App> {
  const config = readConfig({});
  const secrets = { secretKey: Buffer.alloc(32).toString('base64'), stackSecret: '' };
  // Connects with the first statement, and there is none.
  const database = openDatabase({ url: '' }, { poolSize: 1, name: 'catnap-idle' });
  const core: Core = { database, box: createSecretBox(Buffer.alloc(32)), clock, config };
  const nothing = () => Promise.reject(new Error('this application has nothing behind it'));
  const app = await buildApp({
    core,
    config: {
      ...config,
      temporaryDiskEnforcement: 'session',
      storageMethod: null,
      limitsEnforced: false,
      networkProblem: null,
      outsideProblem: null,
      cannot: {},
      releases: {},
    },
    clock,
    log: createLogger({ level: 'error', process: 'idle' }),
    metrics: new ProcessRegistry(),
    version: '',
    consoleFiles: noConsole,
    keyUses: { record: () => {} },
    proxySockets: [],
    authProvider: authProviderParts(core, secrets),
    checkSettings: nothing,
    listExtensions: nothing,
    readLog: nothing,
    sessions: { read: nothing, signal: nothing },
    readVerifiers: nothing,
    dumpSchema: nothing,
    answerAgent: nothing,
    awaitOperation: nothing,
    providers: makeProviders({ ...secrets, config }),
  });
  await app.ready();
  return app;
}
