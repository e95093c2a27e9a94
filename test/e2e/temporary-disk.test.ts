/** A query that fills its temporary disk fails alone: there with the right code, and elsewhere nothing happens. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { mountsUnder } from '../../src/compute/local/host/disks/mounts.ts';
import { spareDiskPrefix } from '../../src/compute/local/host/disks/spares.ts';
import { eventually } from '../helpers/eventually.ts';
import { Program } from '../helpers/program.ts';
import { ask } from '../helpers/query.ts';

const bound = 16 * 1024 ** 2;
/** A sort of so many rows of 1 kB spills them all. */
const spill = (rows: number) =>
  `SELECT count(x) FROM (SELECT rpad(i::text, 1000) AS x FROM generate_series(1, ${rows}) i ORDER BY -i OFFSET 1) s`;
const tooMuch = spill(40_000);
const enough = spill(8_000);

interface Made {
  readonly projectId: string;
  readonly endpointId: string;
  readonly uri: string;
  readonly disk: { limit_bytes: number; enforcement: 'disk' | 'session' };
}

let program: Program;
let one: Made;
let other: Made;
beforeAll(async () => {
  program = await Program.create({ CATNAP_TEMP_DISK_BYTES: String(bound) });
  await program.start();
  one = await makeProject('one');
  other = await makeProject('other');
});
afterAll(() => program.destroy());

async function makeProject(name: string): Promise<Made> {
  const { body } = await program.api('POST', '/projects', { project: { name } });
  const [endpoint] = body.endpoints;
  const uri = body.connection_uris[0].connection_uri;
  return { projectId: body.project.id, endpointId: endpoint.id, uri, disk: endpoint.temporary_disk };
}

const path = ({ projectId, endpointId }: Made) => `/projects/${projectId}/endpoints/${endpointId}`;

async function suspend(made: Made): Promise<void> {
  await program.api('POST', `${path(made)}/suspend`);
  await eventually(async () => {
    expect((await program.api('GET', path(made))).body.endpoint.current_state).toBe('idle');
  });
}

describe('temporary files', () => {
  it('have the bound that the endpoint shows, and it says how it is kept', () => {
    expect(one.disk.limit_bytes).toBe(bound);
    if (process.getuid?.() !== 0) expect(one.disk.enforcement).toBe('session');
  });

  it('beyond it fail one query in one compute, and nothing else', async () => {
    const bystander = ask(other.uri, 'SELECT pg_sleep(2), 1');
    const started = await ask(one.uri, 'SELECT pg_postmaster_start_time()');
    const expected =
      one.disk.enforcement === 'disk'
        ? { code: '53100', message: expect.stringContaining('No space left on device') }
        : { code: '53400' };
    await expect(ask(one.uri, tooMuch)).rejects.toMatchObject(expected);
    expect(await ask(other.uri, enough)).toBe('7999');
    expect(await ask(one.uri, enough), 'the disk is free again').toBe('7999');
    expect(await ask(one.uri, 'SELECT pg_postmaster_start_time()'), 'the server went on').toBe(started);
    await bystander;
    await ask(one.uri, 'CREATE TABLE kept AS SELECT generate_series(1, 100000)');
  });

  it('are bounded again after a nap, a crash of the server and a crash of Catnap', async () => {
    await suspend(one);
    await expect(ask(one.uri, tooMuch)).rejects.toMatchObject({ code: expect.stringMatching(/^53[14]00$/) });
    const [pid] = await program.serverPids(one.endpointId);
    if (pid === undefined) throw new Error('no server runs');
    await program.killHard();
    process.kill(pid, 'SIGKILL');
    await program.start();
    await eventually(async () => expect(await ask(one.uri, enough)).toBe('7999'));
    await expect(ask(one.uri, tooMuch)).rejects.toMatchObject({ code: expect.stringMatching(/^53[14]00$/) });
    expect(await ask(one.uri, 'SELECT count(*) FROM kept')).toBe('100000');
  });

  it('leave nothing mounted once nobody is awake, but those in readiness, which go when Catnap stops', async () => {
    const isInUse = (path: string) => !path.includes(spareDiskPrefix);
    const inUse = async () => (await mountsUnder(program.home.path)).filter(isInUse);
    expect(await inUse()).toHaveLength(one.disk.enforcement === 'disk' ? 2 : 0);
    await suspend(one);
    await program.api('DELETE', `/projects/${other.projectId}`);
    await eventually(async () => expect(await inUse()).toEqual([]));
    await program.stop();
    expect(await mountsUnder(program.home.path)).toEqual([]);
  });
});
