/**
 * The entry of a role process. It loads all that its role needs, gives up its rights, and only then begins: a checkout
 * may be in a folder that the unprivileged user cannot read. It ends when its parent does.
 */
import { errorText } from '../lib/errors.ts';
import { isParentMessage, type RoleInit, type RoleMessage } from './channel/messages.ts';
import { buildParts, type RunningRole } from './parts.ts';

const stopMs = 10_000;
/** What the other roles need is not loaded: for the proxy that is most of the program. */
const loaders = {
  api: async () => (await import('./api.ts')).startApi,
  worker: async () => (await import('./worker.ts')).startWorker,
  proxy: async () => (await import('./proxy.ts')).startProxyRole,
};

let running: RunningRole | undefined;
let certificate: RoleInit['certificate'] | undefined;

// The parent decides when to stop; a Ctrl-C in the terminal reaches the whole group.
process.on('SIGINT', () => {});
process.on('SIGTERM', () => {});
process.on('disconnect', () => process.exit(1));
process.on('message', (message) => {
  if (!isParentMessage(message)) return;
  if (message.kind === 'init') void begin(message);
  if (message.kind === 'certificate') certificate = message.certificate;
  if (message.kind === 'stop') void end();
});

async function begin(init: RoleInit): Promise<void> {
  try {
    const start = await loaders[init.role]();
    dropPrivileges(init);
    running = await start(buildParts(init, () => certificate ?? init.certificate));
    tell({ kind: 'ready' });
  } catch (error) {
    tell({ kind: 'failed', reason: errorText(error) });
    await end();
  }
}

async function end(): Promise<void> {
  setTimeout(() => process.exit(1), stopMs).unref();
  await running?.stop().catch(() => {});
  process.exit(0);
}

function dropPrivileges({ config }: RoleInit): void {
  const uid = config.uids?.service;
  if (uid === undefined) return;
  process.setgroups?.([]);
  process.setgid?.(uid);
  process.setuid?.(uid);
}

function tell(message: RoleMessage): void {
  process.send?.(message);
}
