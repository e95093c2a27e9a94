/** The API process: the HTTP port. */
import { buildApp } from '../api/app.ts';
import type { App } from '../api/kit/app-type.ts';
import { readConsoleFiles } from '../api/kit/console-files.ts';
import { openAdvice } from '../compute/open-driver.ts';
import { makeDump } from '../compute/schema-dump/dump.ts';
import { readSessions, signalSession } from '../compute/server/sessions.ts';
import { readRoleVerifiers } from '../compute/server/verifiers.ts';
import { KeyUseRecorder } from '../core/api-key.ts';
import { createOperationFollower } from '../core/operation-wait.ts';
import { makeSchemaReader } from '../core/schema-reader.ts';
import { createWaker } from '../core/wake.ts';
import type { Config } from '../lib/config.ts';
import { drainOf } from '../lib/drain.ts';
import { ProcessRegistry } from '../lib/process-metrics.ts';
import { makeProviders } from './auth-clients.ts';
import { authProviderParts } from './auth-provider.ts';
import { holdProgram } from './cached-modules.ts';
import { driverChannel } from './channel/driver-channel.ts';
import type { ProcessParts, RunningProcess } from './parts.ts';

const keyUseFlushMs = 10_000;
/** Read while loading, because the process drops its privileges before it begins. */
const consoleFiles = readConsoleFiles(new URL('../console/', import.meta.url));
/** Opened while loading for the same reason, and loaded by the first agent: most installations have none. */
const agents = holdProgram<typeof import('../cli/mcp/served.ts')>('cli/mcp/served');

export async function startApi({ core, log, init, channel }: ProcessParts): Promise<RunningProcess> {
  const { clock } = core;
  const { temporaryDiskEnforcement, storageMethod, limitsProblem, releases, version, proxySockets } = init;
  const { networkProblem, outsideProblem } = init;
  const found = { temporaryDiskEnforcement, storageMethod, limitsEnforced: limitsProblem === null, releases };
  const driver = await openAdvice(core.config, driverChannel(channel));
  const config = { ...core.config, ...found, networkProblem, outsideProblem, cannot: driver.cannot ?? {} };
  const keyUses = new KeyUseRecorder(core);
  const metrics = new ProcessRegistry();
  const authProvider = authProviderParts(core, init);
  const operations = await createOperationFollower(core);
  const waker = await createWaker(core, { log });
  const draining = new AbortController();
  const app = await buildApp({
    core,
    config,
    log,
    clock,
    metrics,
    version,
    keyUses,
    checkSettings: (pgVersion, settings) => driver.checkSettings(pgVersion, settings),
    listExtensions: (pgVersion) => driver.listExtensions(pgVersion),
    readLog: (ref, limit) => driver.readLog(ref, limit),
    sessions: { read: readSessions, signal: signalSession },
    readVerifiers: readRoleVerifiers,
    dumpSchema: makeSchemaReader(core, waker, makeDump(config)),
    answerAgent: (message) => agents().answerMessage(message),
    authProvider,
    proxySockets,
    consoleFiles,
    awaitOperation: operations.awaitOperation,
    providers: makeProviders(init),
    draining: draining.signal,
  });
  const drain = drainOf(app.server);
  const flush = () => keyUses.flush().catch((error) => log.warn({ err: error }, 'key uses could not be saved'));
  const timer = setInterval(flush, keyUseFlushMs);
  await listen(app, config, init.portFd);
  return {
    stop: async () => {
      clearInterval(timer);
      draining.abort();
      await drain.finish(config.drainSeconds * 1_000);
      await app.close();
      await operations.close();
      await waker.close();
      await flush();
      await core.database.close();
    },
  };
}

/** Fastify passes options that it does not know on to Node, which knows `fd`. */
async function listen(app: App, { bind, httpPort }: Pick<Config, 'bind' | 'httpPort'>, fd: number | null) {
  const at = { host: bind, port: httpPort, ...(fd !== null && { fd }) };
  await app.listen(at);
  const address = app.server.address();
  // If the port was taken when the socket was bound, the system has picked another one.
  if (typeof address === 'object' && address?.port === httpPort) return;
  await app.close();
  throw new Error(`port ${httpPort} on ${bind} is taken`);
}
