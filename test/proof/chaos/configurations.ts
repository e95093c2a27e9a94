/** The ways in which Catnap can be run that an episode may choose from, and what each needs on this machine. */
import { chmod, chown, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runProgram } from '../../../src/lib/run-program.ts';
import { eventually } from '../../helpers/eventually.ts';
import { type LoopDisk, makeLoopDisk, whyNoLoopDisk } from '../../helpers/loop-disk.ts';
import { Program } from '../../helpers/program.ts';
import { DatabaseElsewhere } from './database-elsewhere.ts';
import { callsEnvironment } from './faults/of-calls.ts';
import { clockEnvironment } from './faults/of-clocks.ts';

const entry = fileURLToPath(new URL('../../../dist/bin.js', import.meta.url));
const gibibyte = 1024 ** 3;
/** `nobody`, whom every machine knows: initdb asks for the name. */
const ordinaryUid = 65_534;
/** Catnap's own processes run as this one where it is started by root. */
const serviceUid = 700_000;

export interface Installation {
  readonly program: Program;
  readonly isRoot: boolean;
  readonly uid: number | undefined;
  /** A disk that the home has for itself, and that may be filled or frozen. */
  readonly disk: LoopDisk | null;
  readonly database: DatabaseElsewhere | null;
  /** Where branches are: the home, or the storage image that is mounted in it. */
  readonly root: string;
  /** Where the file is that sets the clock of Catnap's processes. */
  readonly clockFolder: string | null;
  /** Where the file is that lists which calls of Catnap's processes fail. */
  readonly callsFolder: string | null;
  /** What must hold of this one besides, at each whole look. */
  audit?(): Promise<void>;
  /** Ends everything. */
  destroy(): Promise<void>;
}

export interface Configuration {
  readonly name: string;
  /** Null where it can be had. */
  whyNot(): Promise<string | null>;
  make(): Promise<Installation>;
}

/** Deletions remove at once, so that what is left over can be told from what waits to be recovered. */
const environment = { CATNAP_RECOVERY_DAYS: '0', CATNAP_SUSPEND_MIN_SECONDS: '1' };

const isRoot = process.getuid?.() === 0;
const always = async () => null;
const onlyRoot = async () => (isRoot ? null : 'only root can');

function plain(program: Program, parts: Partial<Installation> = {}): Installation {
  const usual = {
    isRoot,
    uid: undefined,
    disk: null,
    database: null,
    root: program.home.path,
    clockFolder: null,
    callsFolder: null,
  };
  return { program, ...usual, destroy: () => program.destroy(), ...parts };
}

async function onDisk(kind: 'ext4' | 'xfs', bytes: number): Promise<Installation> {
  const disk = await makeLoopDisk(kind, bytes);
  const program = await Program.create(environment, { under: disk.path });
  const destroy = async () => {
    await program.destroy();
    await disk.remove();
  };
  return plain(program, { disk, destroy });
}

/** As an operator does before the first start. */
async function createStorage(home: string): Promise<void> {
  const words = [entry, 'storage', 'create', '--size', '4G', '--yes'];
  await runProgram(process.execPath, words, { environment: { CATNAP_HOME: home, PATH: process.env.PATH ?? '' } });
}

export const configurations: readonly Configuration[] = [
  { name: 'as it comes', whyNot: always, make: async () => plain(await Program.create(environment)) },
  {
    name: 'two proxies',
    whyNot: always,
    make: async () => plain(await Program.create({ ...environment, CATNAP_PROXIES: '2' })),
  },
  {
    name: 'uploads',
    whyNot: always,
    make: async () => {
      const store = await mkdtemp(join(tmpdir(), 'cs-'));
      if (isRoot) await chown(store, serviceUid, serviceUid);
      const backup = { CATNAP_BACKUP_URL: `file://${store}`, CATNAP_BACKUP_DELAY: '1' };
      const program = await Program.create({ ...environment, ...backup });
      const destroy = async () => {
        await program.destroy();
        await rm(store, { recursive: true, force: true });
      };
      const audit = () =>
        eventually(async () => {
          const kept = await readdir(store);
          if (!kept.includes('catnap.json')) throw new Error(`nothing was uploaded: ${kept.join(', ')}`);
        });
      return plain(program, { destroy, audit });
    },
  },
  {
    name: 'database elsewhere',
    whyNot: always,
    make: async () => {
      const database = await DatabaseElsewhere.open();
      const program = await Program.create({ ...environment, CATNAP_DATABASE_URL: database.url });
      const destroy = async () => {
        await program.destroy();
        await database.close();
      };
      return plain(program, { database, destroy });
    },
  },
  {
    name: 'two of each',
    whyNot: always,
    make: async () => {
      const database = await DatabaseElsewhere.open();
      const counts = { CATNAP_APIS: '2', CATNAP_WORKERS: '2', CATNAP_PROXIES: '2' };
      const program = await Program.create({ ...environment, ...counts, CATNAP_DATABASE_URL: database.url });
      const destroy = async () => {
        await program.destroy();
        await database.close();
      };
      return plain(program, { database, destroy });
    },
  },
  {
    name: 'clock that jumps',
    whyNot: always,
    make: async () => {
      const clockFolder = await mkdtemp(join(tmpdir(), 'cc-'));
      await chmod(clockFolder, 0o755);
      const program = await Program.create({ ...environment, ...clockEnvironment(clockFolder) });
      const destroy = async () => {
        await program.destroy();
        await rm(clockFolder, { recursive: true, force: true });
      };
      return plain(program, { clockFolder, destroy });
    },
  },
  {
    name: 'calls that fail',
    whyNot: always,
    make: async () => {
      const callsFolder = await mkdtemp(join(tmpdir(), 'cf-'));
      await chmod(callsFolder, 0o755);
      const program = await Program.create({ ...environment, ...callsEnvironment(callsFolder) });
      const destroy = async () => {
        await program.destroy();
        await rm(callsFolder, { recursive: true, force: true });
      };
      return plain(program, { callsFolder, destroy });
    },
  },
  {
    name: 'ordinary user',
    whyNot: onlyRoot,
    make: async () =>
      plain(await Program.create(environment, { ownBuilds: true, uid: ordinaryUid }), {
        isRoot: false,
        uid: ordinaryUid,
      }),
  },
  {
    name: 'storage image',
    whyNot: () => whyNoLoopDisk('xfs'),
    make: async () => {
      const program = await Program.create(environment);
      await createStorage(program.home.path);
      return plain(program, { root: join(program.home.path, 'storage') });
    },
  },
  { name: 'small ext4', whyNot: () => whyNoLoopDisk('ext4'), make: () => onDisk('ext4', 3 * gibibyte) },
  { name: 'shared blocks', whyNot: () => whyNoLoopDisk('xfs'), make: () => onDisk('xfs', 4 * gibibyte) },
];
