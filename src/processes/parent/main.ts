/**
 * The parent process: brings up the system database, makes binaries and template ready, starts the roles, and stops
 * them in order. It alone keeps the rights it was started with; the roles give theirs up. Tenants' servers are not
 * its children: they go on when it ends, and are found again when it starts.
 */
import type { ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import type { DriverAccess, DriverHost } from '../../compute/interface/driver-host.ts';
import { openDriverHost } from '../../compute/open-driver-host.ts';
import { systemClock } from '../../lib/clock.ts';
import { type Config, ConfigError } from '../../lib/config.ts';
import { errorText } from '../../lib/errors.ts';
import { createLogger, type Logger } from '../../lib/log.ts';
import { readVersion } from '../../lib/version.ts';
import { type CertificateSource, startCertificateSource } from '../../machine/certificate-source.ts';
import { ensureHome } from '../../machine/home.ts';
import { takeInstanceLock } from '../../machine/instance-lock.ts';
import { choosePorts } from '../../machine/ports.ts';
import { fullCopyNote } from '../../machine/storage/advice.ts';
import type { RoleInit, RoleName } from '../channel/messages.ts';
import { renderBanner } from './banner.ts';
import { type RoleProcess, send, startRoleProcess } from './child-process.ts';
import { createPlaceBrokerage, type PlaceBrokerage } from './place-brokerage.ts';
import { bindSharedPort, type SharedPort } from './shared-port.ts';
import { stopAllComputes } from './stop-computes.ts';
import { type System, startSystem } from './system.ts';

export interface RunOptions {
  readonly roles: readonly RoleName[];
  readonly stopComputes: boolean;
}

/** The worker may ask for everything, which is then done with the parent's rights; the API asks about settings. */
const driverAccess: Readonly<Record<RoleName, DriverAccess>> = { worker: 'all', api: 'checks', proxy: 'none' };
/** Requests stop first, then connections, then the work that both queue. */
const stopOrder: readonly RoleName[] = ['api', 'proxy', 'worker'];

const say = (line: string) => process.stdout.write(`${line}\n`);

/** Runs until it is told to stop; resolves with the exit code. */
export async function runCatnap(config: Config, options: RunOptions): Promise<number> {
  const stopSignal = untilSignal();
  const undo: (() => Promise<unknown>)[] = [];
  try {
    const running = await start(config, options, undo);
    say(running.banner);
    await stopSignal;
    say('Stopping Catnap …');
    if (options.stopComputes) await stopComputes(running.system);
    return 0;
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    process.stderr.write(`catnap: ${errorText(error)}\n`);
    return 1;
  } finally {
    for (const step of undo.reverse())
      await step().catch((error) => process.stderr.write(`catnap: ${errorText(error)}\n`));
  }
}

async function start(given: Config, options: RunOptions, undo: (() => Promise<unknown>)[]) {
  const layout = await ensureHome(given);
  const lock = await takeInstanceLock(join(layout.home, 'catnap.sock'), layout.home);
  undo.push(() => lock.release());
  const ports = await choosePorts(given, { http: options.roles.includes('api'), pg: options.roles.includes('proxy') });
  const config = quietOnTerminal(ports.config);
  const log = createLogger({ level: config.logLevel, role: 'parent' });
  const system = await startSystem(config, log, say);
  undo.push(() => system.stop());
  const host = openDriverHost(config, layout, log);
  undo.push(() => host.close());
  if (options.roles.includes('worker')) await host.prepare(say);
  const facts = await host.readFacts();
  const { temporaryDiskEnforcement, limitsProblem, storageMethod } = facts;
  log.info({ temporaryDiskEnforcement }, 'temporary files are bounded for each compute (disk) or for each session');
  log.info({ limitsProblem }, limitsProblem === null ? 'sizes are enforced' : 'sizes are not enforced');
  const version = readVersion();
  const certificates = await startCertificateSource({
    ...{ config, log, clock: systemClock },
    directory: join(layout.home, 'certificates'),
  });
  undo.push(async () => certificates.stop());
  const shared = {
    kind: 'init' as const,
    config,
    database: system.database,
    secretKey: system.secretKey,
    stackSecret: system.stackSecret,
    certificate: certificates.current(),
    proxySockets: proxyNumbers(config).map((number) => join(layout.processSocketDirectory, `proxy-${number}`)),
    version,
    ...facts,
  };
  const started: StartedRole[] = [];
  const port = options.roles.includes('proxy') ? openPort(config) : null;
  const service = { host, certificates, port, places: createPlaceBrokerage(), log };
  undo.push(() => stopRoles(started));
  // Before them: who comes later shall be refused, not left waiting.
  undo.push(async () => port?.close());
  await Promise.all(
    options.roles.flatMap((role) =>
      (role === 'proxy' ? proxyNumbers(config) : [0]).map(async (proxyNumber) => {
        const process = await startRole({ ...shared, role, proxyNumber }, service);
        started.push({ role, process });
      }),
    ),
  );
  const fullCopies = system.newApiKey === null ? null : fullCopyNote(storageMethod);
  const notes = [ports.note, fullCopies].filter((note) => note !== null);
  return {
    system,
    banner: renderBanner({ ...system, config, version, notes, roles: options.roles }),
  };
}

/** What the parent does for roles. */
interface ParentService {
  readonly host: DriverHost;
  readonly certificates: CertificateSource;
  readonly port: SharedPort | null;
  readonly places: PlaceBrokerage;
  readonly log: Logger;
}

function startRole(init: Omit<RoleInit, 'portFd'>, service: ParentService): Promise<RoleProcess> {
  const { host, certificates, places, log } = service;
  const onSpawn = (child: ChildProcess) => {
    host.serve(child, driverAccess[init.role]);
    if (init.role !== 'proxy') return;
    const unfollow = certificates.follow((certificate) => send(child, { kind: 'certificate', certificate }));
    child.once('exit', unfollow);
    places.serve(child);
  };
  return startRoleProcess({ init, port: init.role === 'proxy' ? service.port : null, log, onSpawn });
}

/** A person reads the terminal: one who wants to see every request says so with CATNAP_LOG_LEVEL. */
function quietOnTerminal(config: Config): Config {
  if (config.logLevelIsExplicit || !process.stdout.isTTY) return config;
  return Object.freeze({ ...config, logLevel: 'warn' });
}

interface StartedRole {
  readonly role: RoleName;
  readonly process: RoleProcess;
}

async function stopRoles(started: readonly StartedRole[]): Promise<void> {
  for (const role of stopOrder) {
    await Promise.all(started.filter((one) => one.role === role).map((one) => one.process.stop()));
  }
}

function openPort({ bind, pgPort, proxies }: Config): SharedPort | null {
  const port = bindSharedPort(bind, pgPort);
  if (port !== null || proxies === 1) return port;
  throw new Error('this version of Node cannot share a port: set CATNAP_PROXIES to 1');
}

function proxyNumbers({ proxies }: Config): number[] {
  return Array.from({ length: proxies }, (_, number) => number);
}

async function stopComputes(system: System): Promise<void> {
  const left = await stopAllComputes(system.core);
  if (left > 0) process.stderr.write(`catnap: ${left} computes did not stop in time and go on\n`);
}

function untilSignal(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => resolve());
  });
}
