/**
 * The entry of a role process. It loads everything, gives up its rights, and only then begins: a checkout may be in a
 * folder that the unprivileged user cannot read. It ends when its parent does.
 */
import { errorText } from './errors.ts';
import { startApi } from './roles/api.ts';
import { isParentMessage, type RoleInit, type RoleMessage } from './roles/messages.ts';
import { buildParts, type RunningRole } from './roles/parts.ts';
import { startProxyRole } from './roles/proxy.ts';
import { startWorker } from './roles/worker.ts';

const stopMs = 10_000;
const starters = { api: startApi, worker: startWorker, proxy: startProxyRole };

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
    dropPrivileges(init);
    running = await starters[init.role](buildParts(init, () => certificate ?? init.certificate));
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
