/**
 * The entry point of a child process. It loads everything it needs, drops its privileges, and only then begins: a
 * checkout may be in a directory that the unprivileged user cannot read. It ends when its parent does.
 */
import { errorText } from '../lib/errors.ts';
import { hushTerminal } from '../lib/log.ts';
import { type ChildInit, openChildEnd } from './channel/messages.ts';
import { buildParts, type RunningProcess } from './parts.ts';

/** What stopping may take beyond the time in which clients may finish. */
const stopMsBeyond = 10_000;
/** Loads only what this process needs: for the proxy that leaves out most of the program. */
const loaders = {
  api: async () => (await import('./api.ts')).startApi,
  worker: async () => (await import('./worker.ts')).startWorker,
  backup: async () => (await import('./backup.ts')).startBackup,
  proxy: async () => (await import('./proxy.ts')).startProxyProcess,
};

const channel = openChildEnd(process);
/** At once, while the parent still prepares what the process works with. A failure is reported when it begins. */
const loading = Object.entries(loaders).find(([name]) => name === process.argv[2])?.[1]();
loading?.catch(() => {});
let running: RunningProcess | undefined;
let isEnding = false;
let drainMs = 0;
let certificate: ChildInit['certificate'] | undefined;

// The parent decides when to stop; a Ctrl-C in the terminal reaches the whole process group.
process.on('SIGINT', hushTerminal);
process.on('SIGTERM', () => {});
channel.onClose(() => process.exit(1));
channel.on('init', (init) => void begin(init));
channel.on('certificate', (newer) => {
  certificate = newer;
});
channel.on('stop', () => {
  if (!isEnding) void end();
});

async function begin(init: ChildInit): Promise<void> {
  try {
    drainMs = init.config.drainSeconds * 1_000;
    const start = await (loading ?? loaders[init.name]());
    dropPrivileges(init);
    running = await start(buildParts(init, channel, () => certificate ?? init.certificate));
    channel.send('ready', null);
  } catch (error) {
    channel.send('failed', errorText(error));
    await end();
  }
}

async function end(): Promise<void> {
  isEnding = true;
  setTimeout(() => process.exit(1), drainMs + stopMsBeyond).unref();
  await running?.stop().catch(() => {});
  process.exit(0);
}

function dropPrivileges({ config }: ChildInit): void {
  const uid = config.uids?.service;
  if (uid === undefined) return;
  // Where Node refuses the change, the parent has started this process as that user.
  if (process.getuid?.() !== uid) becomeUser(uid);
  // libuv starts a process also when it could not take them away.
  const others = process.getgroups?.().filter((group) => group !== uid) ?? [];
  if (others.length > 0) throw new Error(`the process keeps the rights of the groups ${others.join(', ')}`);
}

function becomeUser(uid: number): void {
  process.setgroups?.([]);
  process.setgid?.(uid);
  process.setuid?.(uid);
}
