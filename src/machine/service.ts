/**
 * Catnap as a service of systemd: the text of its unit, and where that goes. As root Catnap mounts filesystems and
 * finds them again after a restart, so its unit asks for nothing that would give the service mounts of its own.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { parseEnv } from 'node:util';
import { readConfig } from '../lib/config.ts';
import { errorText } from '../lib/errors.ts';
import { runProgram } from '../lib/run-program.ts';

export interface ServiceFacts {
  /** The program that runs it, and what it runs. */
  readonly node: string;
  readonly entry: string;
  /** The account it runs as; null for root, or in a unit of a user's own manager for that user. */
  readonly account: string | null;
  /** Whether the machine's manager runs it, which only root can have. */
  readonly isOfMachine: boolean;
  /** A file with settings, one `NAME=value` a line. */
  readonly settingsFile: string;
  /** Whether systemd keeps the ports open, by a unit of their own. */
  readonly hasSockets?: boolean;
}

export interface ServicePorts {
  readonly bind: string;
  readonly httpPort: number;
  readonly pgPort: number;
}

export interface ServicePlan {
  readonly unitFile: string;
  readonly settingsFile: string;
  readonly text: string;
  /** The unit of the ports; null where Catnap opens them itself. */
  readonly socket: { readonly file: string; readonly text: string } | null;
  /** What to do next, as commands. */
  readonly next: readonly string[];
  /** What does not work here, as sentences. */
  readonly notes: readonly string[];
}

export const serviceName = 'catnap.service';
const socketName = 'catnap.socket';

/** Systemd gives a service a group below the delegated one from this version on. */
const subgroupVersion = 254;

export interface ServiceRequest {
  readonly account: string | undefined;
  /** Whether the machine knows that account; true without one. */
  readonly isAccountKnown: boolean;
  readonly entry: string;
  readonly isRoot: boolean;
  /** Null where there is no systemd. */
  readonly systemdVersion: number | null;
  /** The ports that systemd is to keep open; undefined for none. */
  readonly ports?: ServicePorts | undefined;
  /** Those that the shell of this command would have Catnap listen on. */
  readonly portsOfShell?: ServicePorts | undefined;
}

export function planService(request: ServiceRequest): ServicePlan {
  const { account, entry, isRoot, systemdVersion, ports } = request;
  if (!isRoot && account !== undefined) throw new Error('--user needs root: only root can name the account');
  const isNamed = account !== undefined && account !== 'root';
  if (isNamed && !/^[a-z_][a-z0-9_-]{0,31}$/i.test(account)) throw new Error(`--user ${account} is not an account`);
  if (isNamed && !request.isAccountKnown)
    throw new Error(`--user ${account} is no account of this machine: make it first`);
  const settingsFile = settingsFileOf(isRoot);
  const facts = {
    node: process.execPath,
    entry,
    account: isNamed ? account : null,
    isOfMachine: isRoot,
    settingsFile,
    hasSockets: ports !== undefined,
  };
  const units = join(configFolder(isRoot), isRoot ? 'systemd/system' : 'systemd/user');
  const control = isRoot ? 'systemctl' : 'systemctl --user';
  return {
    unitFile: join(units, serviceName),
    settingsFile,
    text: renderUnit(facts),
    socket: ports === undefined ? null : { file: join(units, socketName), text: renderSocketUnit(ports) },
    next: [
      `${control} daemon-reload`,
      `${control} enable --now ${ports === undefined ? '' : `${socketName} `}catnap`,
      ...(isRoot ? [] : ['loginctl enable-linger   # so that it runs while you are not logged in']),
      `journalctl ${isRoot ? '' : '--user '}-u catnap -f   # its log`,
    ],
    notes: [...notesOnPorts(request, settingsFile), ...notesOn(entry, systemdVersion, isRoot && !isNamed)],
  };
}

const configFolder = (isRoot: boolean) => (isRoot ? '/etc' : join(homedir(), '.config'));

export const settingsFileOf = (isRoot: boolean) =>
  join(configFolder(isRoot), isRoot ? 'catnap.env' : 'catnap/settings.env');

/** Those of the settings file: nothing that is set in the shell of this command reaches the service. */
export async function findServicePorts(settingsFile: string): Promise<ServicePorts> {
  const text = await readFile(settingsFile, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '';
    throw error;
  });
  try {
    return readConfig(parseEnv(text));
  } catch (error) {
    throw new Error(`${settingsFile}: ${errorText(error)}`, { cause: error });
  }
}

function notesOnPorts({ ports, portsOfShell }: ServiceRequest, settingsFile: string): string[] {
  if (ports === undefined || portsOfShell === undefined) return [];
  const texts = [ports, portsOfShell].map(({ bind, httpPort, pgPort }) => `${httpPort} and ${pgPort} on ${bind}`);
  const [kept, ofShell] = texts;
  if (kept === ofShell) return [];
  return [`The service takes its ports from ${settingsFile}: ${kept}, and not ${ofShell} as in this shell.`];
}

function notesOn(entry: string, systemdVersion: number | null, isAsRoot: boolean): string[] {
  const notes: string[] = [];
  if (systemdVersion === null) notes.push('There is no systemd on this machine, which is what the unit is for.');
  else if (systemdVersion < subgroupVersion && !isAsRoot) {
    const needed = `systemd ${subgroupVersion} or newer, and this is ${systemdVersion}`;
    notes.push(`Sizes of computes are not enforced here unless Catnap runs as root: that takes ${needed}.`);
  }
  if (entry.includes('/_npx/')) {
    notes.push('This program is in the cache of npx, which npm may clear: install it with npm install --global first.');
  }
  return notes;
}

export function renderUnit({ node, entry, account, isOfMachine, settingsFile, hasSockets }: ServiceFacts): string {
  const isAsRoot = isOfMachine && account === null;
  const lines = [
    '# Written by `catnap service install`. Settings belong into the file that EnvironmentFile names.',
    '[Unit]',
    'Description=Catnap, serverless Postgres',
    ...(isOfMachine ? ['Wants=network-online.target', 'After=network-online.target'] : []),
    ...(hasSockets ? [`Requires=${socketName}`, `After=${socketName}`] : []),
    '',
    '[Service]',
    'Type=exec',
    `ExecStart=${word(node)} ${word(entry)} up`,
    `EnvironmentFile=-${settingsFile.replaceAll('%', '%%')}`,
    ...(account === null ? [] : [`User=${account}`]),
    'Restart=on-failure',
    'RestartSec=2',
    'TimeoutStopSec=60',
    '# The servers of tenants go on while Catnap is stopped or replaced, and are found again.',
    'KillMode=process',
    'OOMPolicy=continue',
    '# Computes get control groups of their own, below the one of the service.',
    'Delegate=cpu memory pids',
    ...(isAsRoot ? [] : ['DelegateSubgroup=catnap']),
    'LimitNOFILE=65536',
    'TasksMax=infinity',
    '# Nothing here may change what the service sees of the filesystem: see docs/operating.md.',
    'NoNewPrivileges=yes',
    'LockPersonality=yes',
    'RestrictRealtime=yes',
    'SystemCallArchitectures=native',
    'RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK',
    ...(isOfMachine && !isAsRoot ? ['CapabilityBoundingSet=', 'RestrictSUIDSGID=yes'] : []),
    '',
    '[Install]',
    `WantedBy=${isOfMachine ? 'multi-user.target' : 'default.target'}`,
  ];
  return `${lines.join('\n')}\n`;
}

/** Clients that connect while Catnap is replaced wait in the kernel's queue, which is as long as Catnap's own. */
export function renderSocketUnit({ bind, httpPort, pgPort }: ServicePorts): string {
  const host = bind.includes(':') ? `[${bind}]` : bind;
  const lines = [
    '# Written by `catnap service install --sockets`. The ports are those of CATNAP_HTTP_PORT and CATNAP_PG_PORT.',
    '[Unit]',
    'Description=Ports of Catnap, which stay open while it is replaced',
    '',
    '[Socket]',
    ...[httpPort, pgPort].map((port) => `ListenStream=${host}:${port}`),
    'Backlog=4096',
    ...(bind.includes(':') ? ['BindIPv6Only=both'] : []),
    '',
    '[Install]',
    'WantedBy=sockets.target',
  ];
  return `${lines.join('\n')}\n`;
}

/** As a word of a command line in a unit: blanks, quotes, and signs that systemd would replace. */
function word(text: string): string {
  const escaped = text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('%', '%%').replaceAll('$', '$$$$');
  return /^[\w./@+,:%$-]+$/.test(escaped) ? escaped : `"${escaped}"`;
}

/** As systemd will look for it: in `/etc/passwd` and in whatever directory the machine asks besides. */
export async function isAccount(name: string): Promise<boolean> {
  return runProgram('id', ['-u', '--', name]).then(
    () => true,
    () => false,
  );
}

/** Null where there is none. */
export async function findSystemdVersion(): Promise<number | null> {
  const answer = await runProgram('systemctl', ['--version']).catch(() => '');
  const [, version] = /^systemd (\d+)/.exec(answer) ?? [];
  return version === undefined ? null : Number(version);
}

export async function installService({ unitFile, settingsFile, text, socket }: ServicePlan): Promise<void> {
  await mkdir(dirname(unitFile), { recursive: true });
  await writeFile(unitFile, text, { mode: 0o644 });
  if (socket !== null) await writeFile(socket.file, socket.text, { mode: 0o644 });
  await mkdir(dirname(settingsFile), { recursive: true });
  // Keys may be in it. One that is there stays as it is.
  const empty = '# Settings of Catnap, one a line, such as CATNAP_HTTP_PORT=7070. The README lists them.\n';
  await writeFile(settingsFile, empty, { mode: 0o600, flag: 'wx' }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
  });
}
