/** The API role: the HTTP port. */
import { Registry } from 'prom-client';
import { buildApp } from '../api/app.ts';
import { readConsoleFiles } from '../api/kit/console-files.ts';
import { remoteHost } from '../compute/local/channel/remote.ts';
import { KeyUseRecorder } from '../core/api-key.ts';
import { createOperationWaiter } from '../core/operation-wait.ts';
import { makeProviders } from './auth-clients.ts';
import { authProviderParts } from './auth-provider.ts';
import type { RoleParts, RunningRole } from './parts.ts';
import { createSchemaReader } from './schema-reader.ts';

const keyUseFlushMs = 10_000;
/** While loading, as the process gives up its rights before it begins. */
const consoleFiles = readConsoleFiles(new URL('../console/', import.meta.url));

export async function startApi({ core, log, init }: RoleParts): Promise<RunningRole> {
  const { clock } = core;
  const { temporaryDiskEnforcement, storageMethod, limitsProblem, releases, version, proxySockets } = init;
  const found = { temporaryDiskEnforcement, storageMethod, limitsEnforced: limitsProblem === null, releases };
  const config = { ...core.config, ...found };
  const keyUses = new KeyUseRecorder(core);
  const { checkSettings } = remoteHost(process);
  const metrics = new Registry();
  const authProvider = authProviderParts(core, init);
  const waiter = await createOperationWaiter(core);
  const schemas = await createSchemaReader(core, log);
  const app = await buildApp({
    core,
    config,
    log,
    clock,
    metrics,
    version,
    keyUses,
    checkSettings,
    dumpSchema: schemas.read,
    authProvider,
    proxySockets,
    consoleFiles,
    awaitOperation: waiter.awaitOperation,
    providers: makeProviders(init),
  });
  const flush = () => keyUses.flush().catch((error) => log.warn({ err: error }, 'uses of keys could not be written'));
  const timer = setInterval(flush, keyUseFlushMs);
  await app.listen({ host: config.bind, port: config.httpPort });
  return {
    stop: async () => {
      clearInterval(timer);
      await app.close();
      await waiter.close();
      await schemas.close();
      await flush();
      await core.database.close();
    },
  };
}
