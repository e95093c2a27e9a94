/** A newer build of Postgres on the machine: it applies at the next start, which may be one in a maintenance window. */
import { cp, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { eventually } from '../helpers/eventually.ts';
import { Program } from '../helpers/program.ts';
import { ask } from '../helpers/query.ts';

let program: Program;
beforeAll(async () => {
  // A new build removes old ones, which other tests may be using.
  program = await Program.create({}, { ownBuilds: true });
  await program.start();
});
afterAll(() => program.destroy());

async function makeCompute(suspendSeconds: number, settings = {}) {
  const default_endpoint_settings = { suspend_timeout_seconds: suspendSeconds };
  const { body } = await program.api('POST', '/projects', { project: { default_endpoint_settings, settings } });
  await program.settle(body.project.id);
  const path = `/projects/${body.project.id}/endpoints/${body.endpoints[0].id}`;
  const uri = body.connection_uris[0].connection_uri;
  return { projectId: body.project.id, path, uri, look: async () => (await program.api('GET', path)).body.endpoint };
}

/** The same binaries in another place are another build, as a package of the system would be; it has news, too. */
async function otherBuild(): Promise<string> {
  const builds = join(program.home.path, 'builds', '17');
  const [name = ''] = (await readdir(builds)).filter((entry) => !entry.startsWith('.'));
  const copy = join(program.home.path, 'other-build');
  await cp(join(builds, name), copy, { recursive: true, verbatimSymlinks: true });
  const extension = join(copy, 'share', 'postgresql', 'extension', 'news');
  await writeFile(`${extension}.control`, `default_version = '1.0'\ntrusted = true\n`);
  await writeFile(`${extension}--1.0.sql`, 'CREATE FUNCTION news() RETURNS int LANGUAGE sql RETURN 42;');
  return join(copy, 'bin');
}

const minuteMs = 60_000;
/** The first full minute after a compute was started: a window that opens then opens for it. */
const nextMinute = (startedAt: string) => new Date(Math.ceil(Date.parse(startedAt) / minuteMs) * minuteMs);
/** 1 is Monday. */
const weekday = (at: Date) => at.getUTCDay() || 7;
const clockTime = (at: Date) => at.toISOString().slice(11, 16);

/** An hour from the time on, on its day or, if it is not to be open, on another. */
const windowFrom = (at: Date, isOpen: boolean) => ({
  weekdays: [isOpen ? weekday(at) : ((weekday(at) + 2) % 7) + 1],
  start_time: clockTime(at),
  end_time: clockTime(new Date(at.getTime() + 60 * minuteMs)),
});

it('applies at the next start; a compute that never sleeps keeps its old one until its window or a restart', async () => {
  const windowed = await makeCompute(-1, { maintenance_window: windowFrom(new Date(), false) });
  const always = await makeCompute(-1);
  const sleeper = await makeCompute(300);
  await ask(always.uri, 'CREATE TABLE t AS SELECT 7 AS n');
  const old = (await always.look()).compute_release_version;
  expect((await always.look()).pending_update).toBeUndefined();

  await program.stop();
  await program.start([], { CATNAP_PG_BIN_17: await otherBuild() });
  const waiting = await always.look();
  expect(waiting.compute_release_version).toBe(old);
  const newer = waiting.pending_update?.compute_release_version;
  expect(newer).toMatch(/^17.*given/);

  await program.api('POST', `${sleeper.path}/suspend`);
  await program.settle(sleeper.projectId);
  expect((await sleeper.look()).pending_update).toBeUndefined();
  await ask(sleeper.uri, 'SELECT 1');
  await program.settle(sleeper.projectId);
  expect((await sleeper.look()).compute_release_version).toBe(newer);

  await ask(sleeper.uri, 'CREATE EXTENSION news');
  expect(await ask(sleeper.uri, 'SELECT news()')).toBe('42');

  const opensAt = nextMinute((await windowed.look()).started_at);
  await eventually(() => expect(Date.now()).toBeGreaterThan(opensAt.getTime()), { deadlineMs: 2 * minuteMs });
  expect((await windowed.look()).compute_release_version).toBe(old);
  const maintenance_window = windowFrom(opensAt, true);
  await program.api('PATCH', `/projects/${windowed.projectId}`, { project: { settings: { maintenance_window } } });
  await eventually(async () => expect((await windowed.look()).compute_release_version).toBe(newer), {
    deadlineMs: 150_000,
    everyMs: 200,
  });
  expect((await windowed.look()).pending_update).toBeUndefined();
  await ask(windowed.uri, 'CREATE EXTENSION news');

  expect((await always.look()).compute_release_version).toBe(old);
  await expect(ask(always.uri, 'CREATE EXTENSION news')).rejects.toThrow('"news" is not available');
  await program.api('POST', `${always.path}/restart`);
  await program.settle(always.projectId);
  const restarted = await always.look();
  expect([restarted.compute_release_version, restarted.pending_update]).toEqual([newer, undefined]);
  expect(await ask(always.uri, 'SELECT n FROM t')).toBe('7');
  expect(await ask(always.uri, `SELECT current_setting('catnap.release')`)).toBe(newer);
  await ask(always.uri, 'CREATE EXTENSION news');
});
