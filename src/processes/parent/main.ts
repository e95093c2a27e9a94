/**
 * The parent process: brings up the system database, prepares binaries and template, starts the child processes, and
 * stops them in order. It alone keeps the privileges it was started with; its children drop theirs. Tenants' servers
 * are not its children: they keep running when it ends, and are found again when it starts.
 */

import type { ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { newBackupKeyLine } from '../../backup/seal/backup-key.ts';
import type { DriverAccess, DriverHost } from '../../compute/interface/driver-host.ts';
import { openDriverHost } from '../../compute/open-driver-host.ts';
import { suspendAllComputes } from '../../core/suspend-all.ts';
import { endDuties } from '../../db/duties.ts';
import { expireLeases } from '../../db/leases.ts';
import { systemClock } from '../../lib/clock.ts';
import { commandName } from '../../lib/command-name.ts';
import { type Config, ConfigError, passedDescriptors } from '../../lib/config.ts';
import { errorText } from '../../lib/errors.ts';
import { createLogger, type Logger } from '../../lib/log.ts';
import { openLogOutput } from '../../lib/log-output.ts';
import { misspeltWords } from '../../lib/misspelt-settings.ts';
import { readVersion } from '../../lib/version.ts';
import { keepBallast } from '../../machine/ballast.ts';
import { type CertificateSource, startCertificateSource } from '../../machine/certificate-source.ts';
import { ensureHome } from '../../machine/home.ts';
import { takeInstanceLock } from '../../machine/instance-lock.ts';
import { ensureBackupKey, ensureInstallationId, readHomeFiles } from '../../machine/key-files.ts';
import { choosePorts } from '../../machine/ports.ts';
import { type ChosenRuntime, chooseProxyRuntime, onNode } from '../../machine/proxy-runtime.ts';
import { requireNoRestore } from '../../machine/restore/journal.ts';
import { driverChannel } from '../channel/driver-channel.ts';
import type { BackupInit, ChildInit, ParentEnd, ProcessName } from '../channel/messages.ts';
import { countOf } from '../parts.ts';
import { renderBanner } from './banner.ts';
import { childProgram, forkChild, type KeptChild, keepChildRunning, programIdentity } from './child-process.ts';
import { type ChildUser, chooseChildUser } from './child-user.ts';
import { takeDatabaseLock } from './database-lock.ts';
import { notesOnMachine } from './notes.ts';
import { takePassedPorts } from './passed-ports.ts';
import { createPermitBrokerage, type PermitBrokerage } from './permit-brokerage.ts';
import { bindSharedPort, type SharedPort } from './shared-port.ts';
import { startTogether } from './start-together.ts';
import { startSystem } from './system.ts';
import { startVerifying } from './verify-schedule.ts';

export interface RunOptions {
  readonly processes: readonly ProcessName[];
  readonly stopComputes: boolean;
}

/** The worker may call everything, with the parent's privileges; the API may only check settings and read logs. */
const driverAccess: Readonly<Record<ProcessName, DriverAccess>> = {
  worker: 'all',
  api: 'checks',
  proxy: 'none',
  backup: 'none',
};
/** Together, because clients of one may be served through the other; the work that both queue stops after them. */
const askingProcesses: readonly ProcessName[] = ['api', 'proxy'];
const restartOrder: readonly ProcessName[] = [...askingProcesses, 'worker', 'backup'];
/** What a process may take to stop beyond the time in which its clients may finish. */
const stopMsBeyond = 15_000;

/** To the same place as the log, and as little depends on it. */
const output = openLogOutput();
const say = (line: string) => output.write(`${line}\n`);

/** Runs until it is stopped; resolves with the exit code. */
export async function runCatnap(config: Config, options: RunOptions): Promise<number> {
  const stopSignal = untilSignal();
  const undo: (() => Promise<unknown>)[] = [];
  try {
    const running = await start(config, options, undo);
    say(running.banner);
    await Promise.race([stopSignal, running.restartWhenAsked(), running.lostDatabase]);
    say('Stopping Catnap …');
    if (options.stopComputes) await stopComputes(running);
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
  await requireNoRestore(layout.home);
  // Without a store there is nothing for it to do.
  const processes = options.processes.filter((name) => name !== 'backup' || given.backup !== undefined);
  const runs = (name: ProcessName) => processes.includes(name);
  const passed = await takePassedPorts(passedDescriptors(), given);
  undo.push(async () => {
    for (const port of passed.values()) port.close();
  });
  const isToBeFree = (name: ProcessName, port: number) => runs(name) && !passed.has(port);
  const chosen = await choosePorts(given, {
    http: isToBeFree('api', given.httpPort),
    pg: isToBeFree('proxy', given.pgPort),
  });
  const config = readableOnTerminal(chosen.config);
  const log = createLogger({ level: config.logLevel, format: config.logFormat, process: 'parent' });
  const ports = {
    proxy: runs('proxy') ? (passed.get(config.pgPort) ?? openPort(config, config.pgPort, 'proxy')) : null,
    api: runs('api') ? (passed.get(config.httpPort) ?? openPort(config, config.httpPort, 'api')) : null,
  };
  const portOf = (name: ProcessName) => (name === 'proxy' || name === 'api' ? ports[name] : null);
  const proxyRuntime = await chooseProxyRuntime(runs('proxy') ? config.proxyRuntime : 'node');
  const runtimeOf = (name: ProcessName) => (name === 'proxy' ? proxyRuntime : onNode('only proxies pass bytes on'));
  if (runs('proxy')) log.info({ why: proxyRuntime.why }, `the proxy runs on ${proxyRuntime.name}`);
  const childUser = await chooseChildUser(config.uids, childProgram);
  const forked = processes.flatMap((name) =>
    numbersOf(config, name).map((number) => {
      return { name, number, child: forkChild({ name, number }, portOf(name), runtimeOf(name), childUser) };
    }),
  );
  undo.push(async () => {
    for (const { child } of forked) child.kill('SIGKILL');
  });
  const ballast = await keepBallast(layout, log);
  undo.push(() => ballast.stop());
  const host = await openDriverHost(config, layout, log);
  undo.push(() => host.close());
  // Found out by trying, mostly in other processes, while the system database starts.
  const findingOut = host.readFacts();
  undo.push(() => findingOut.catch(() => {}));
  findingOut.catch(() => {});
  const system = await startSystem(config, log, say);
  undo.push(() => system.stop());
  const facts = await findingOut;
  let lostDatabase = new Promise<never>(() => {});
  if (runs('worker')) {
    // The embedded one can only be reached from this home, which has a lock of its own.
    if (facts.dataIsHere && config.databaseUrl !== undefined) {
      const databaseLock = await takeDatabaseLock(system.database);
      undo.push(() => databaseLock.release());
      lostDatabase = databaseLock.lost.then((error) => {
        throw error;
      });
      // A start that is under way fails by itself, and nobody waits for this one yet.
      lostDatabase.catch(() => {});
    }
    // Whatever a worker holds, it was one of an earlier parent: there can be no other one.
    if (facts.dataIsHere) {
      await expireLeases(system.core.database.sql);
      await endDuties(system.core.database.sql);
    }
    await host.prepare(say);
  }
  const { temporaryDiskEnforcement, limitsProblem, networkProblem, historyDirectory } = facts;
  log.info({ temporaryDiskEnforcement }, 'temporary files are limited for each compute (disk) or for each session');
  log.info({ limitsProblem }, limitsProblem === null ? 'sizes are enforced' : 'sizes are not enforced');
  // The banner says so to a person.
  if (networkProblem !== null && config.logFormat !== 'text')
    log.warn({ networkProblem }, 'SQL in computes reaches everything that the machine does');
  const version = readVersion();
  const certificates = await startCertificateSource({
    config,
    log,
    clock: systemClock,
    directory: join(layout.home, 'certificates'),
  });
  undo.push(async () => certificates.stop());
  const shared = {
    config,
    database: system.database,
    secretKey: system.secretKey,
    stackSecret: system.stackSecret,
    certificate: certificates.current(),
    proxySockets: numbersOf(config, 'proxy').map((number) => join(layout.proxySocketDirectory, String(number))),
    worksAlone: facts.dataIsHere && config.workers === 1,
    version,
    ...facts,
    backup: null,
  };
  const backup =
    runs('backup') && historyDirectory !== null ? await prepareBackup(layout.home, historyDirectory) : null;
  const started: StartedChild[] = [];
  const permits = createPermitBrokerage(config.replicas);
  const service = { host, certificates, portOf, runtimeOf, childUser, permits, log };
  undo.push(() => stopChildren(started, ['backup']));
  undo.push(() => stopChildren(started, ['worker']));
  const stopRequests = async () => {
    // Closed before the children stop: clients that connect later are refused instead of left waiting.
    for (const port of Object.values(ports)) port?.close();
    await stopChildren(started, askingProcesses);
  };
  undo.push(stopRequests);
  const parentId = randomBytes(6).toString('hex');
  // Those that a failed start does not know of would be kept running for ever.
  await startTogether(
    forked.map(async ({ name, number, child }) => {
      const workerId = `${parentId}${number.toString(16).padStart(4, '0')}`;
      const init = { ...shared, name, number, workerId, ...(name === 'backup' && { backup }) };
      started.push({ name, child: await startChild(init, child, service) });
    }),
  );
  if (config.backup?.verifySeconds !== undefined) {
    const schedule = startVerifying(config.backup.verifySeconds, system.core, log);
    undo.push(() => schedule.stop());
  }
  const command = commandName(config.programPath);
  const [isRoot, isFirstStart] = [config.uids !== null, system.newApiKey !== null];
  const notes = [
    ...config.misspelt.map(misspeltWords),
    ...(chosen.note === null ? [] : [chosen.note]),
    ...notesOnMachine({ facts, isRoot, isFirstStart, command }),
  ];
  return {
    system,
    stopRequests,
    lostDatabase,
    restartWhenAsked: () => restartOnSignal(started, log),
    banner: renderBanner({
      ...system,
      config,
      version,
      command,
      notes,
      processes: processes.filter((name) => name !== 'backup'),
      isOnTerminal: process.stdout.isTTY === true,
    }),
  };
}

/** The parent may read the key files, and its children may not. */
async function prepareBackup(home: string, historyDirectory: string): Promise<BackupInit> {
  const key = await ensureBackupKey(home, newBackupKeyLine);
  const installationId = await ensureInstallationId(home);
  const files = await readHomeFiles(home);
  const homeFiles = files.map(({ name, content }) => ({ name, content: content.toString('base64') }));
  return { key, installationId, historyDirectory, homeFiles };
}

/** What the parent does for its children. */
interface ParentService {
  readonly host: DriverHost;
  readonly certificates: CertificateSource;
  readonly portOf: (name: ProcessName) => SharedPort | null;
  readonly runtimeOf: (name: ProcessName) => ChosenRuntime;
  readonly childUser: ChildUser | null;
  readonly permits: PermitBrokerage;
  readonly log: Logger;
}

function startChild(init: Omit<ChildInit, 'portFd'>, forked: ChildProcess, service: ParentService): Promise<KeptChild> {
  const { host, certificates, permits, log } = service;
  const onSpawn = (child: ChildProcess, channel: ParentEnd) => {
    host.serve(driverChannel(channel), driverAccess[init.name]);
    if (init.name !== 'proxy') return;
    const unfollow = certificates.follow((certificate) => channel.send('certificate', certificate));
    child.once('exit', unfollow);
    child.once(
      'exit',
      host.follow((server) => channel.send('server', server)),
    );
    permits.serve(child, channel);
  };
  const port = service.portOf(init.name);
  const fork = (runtime: ChosenRuntime) => forkChild(init, port, runtime, service.childUser);
  const runtime = service.runtimeOf(init.name);
  const stopMs = init.config.drainSeconds * 1_000 + stopMsBeyond;
  return keepChildRunning({ init, forked, fork, port, runtime, log, stopMs, onSpawn });
}

/** A person reads the terminal, in words, and can set CATNAP_LOG_LEVEL to see every request. */
function readableOnTerminal(config: Config): Config {
  if (!process.stdout.isTTY) return config;
  const logFormat = config.logFormat === 'auto' ? 'text' : config.logFormat;
  return Object.freeze({ ...config, logFormat, ...(!config.logLevelIsExplicit && { logLevel: 'warn' }) });
}

interface StartedChild {
  readonly name: ProcessName;
  readonly child: KeptChild;
}

async function stopChildren(started: readonly StartedChild[], names: readonly ProcessName[]): Promise<void> {
  await Promise.all(started.filter(({ name }) => names.includes(name)).map(({ child }) => child.stop()));
}

/** Never returns. At each SIGUSR2 every child is restarted, one after the other, so that the others go on serving. */
async function restartOnSignal(started: readonly StartedChild[], log: Logger): Promise<never> {
  const own = programIdentity();
  let asked = () => {};
  process.on('SIGUSR2', () => asked());
  for (;;) {
    await new Promise<void>((resolve) => {
      asked = resolve;
    });
    if (programIdentity() !== own) {
      log.error('not restarted: the program on the disk is another one now, so stop Catnap and start it again');
      continue;
    }
    for (const name of restartOrder) {
      for (const { child } of started.filter((one) => one.name === name)) await child.restart();
    }
    log.info('every process was restarted');
  }
}

function openPort(config: Config, number: number, name: 'api' | 'proxy'): SharedPort | null {
  const port = bindSharedPort(config.bind, number);
  if (port !== null || countOf(config, name) === 1) return port;
  throw new Error('this version of Node cannot share a port: set CATNAP_APIS and CATNAP_PROXIES to 1');
}

function numbersOf(config: Config, name: ProcessName): number[] {
  return Array.from({ length: countOf(config, name) }, (_, number) => number);
}

/** Nobody may ask for another start once the last compute is asleep, so requests stop before. */
async function stopComputes({ system, stopRequests }: Awaited<ReturnType<typeof start>>): Promise<void> {
  await stopRequests();
  const left = await suspendAllComputes(system.core);
  if (left > 0) process.stderr.write(`catnap: ${left} computes did not stop in time and go on\n`);
}

function untilSignal(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => resolve());
    // It would end the process; while that still starts, there is nothing to restart.
    process.on('SIGUSR2', () => {});
  });
}
