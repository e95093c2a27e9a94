/**
 * Much data through the proxy, in and out, direct and pooled: its memory stays flat, also when one end is slower than
 * the other. CATNAP_TEST_COPY_MB=1024 for the full size and all four ways; CATNAP_TEST_FIGURES=1 prints what was seen.
 */
import { readFile } from 'node:fs/promises';
import { Readable, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { thinkTime, usualTestMs } from '../helpers/eventually.ts';
import { Program } from '../helpers/program.ts';
import { ask } from '../helpers/query.ts';

const defaultMegabytes = 128;
const megabytes = Number(process.env.CATNAP_TEST_COPY_MB ?? defaultMegabytes);
const mb = 1_000_000;
/** A proxy that kept what passes would hold all of it; this much is chunks that await collection. */
const growthMax = 80 * mb;
const row = `${'x'.repeat(999)}\n`;

let program: Program;
let proxyPid: number;
let uris: { readonly direct: string; readonly pooled: string };
const sessions: postgres.Sql[] = [];

beforeAll(async () => {
  program = await Program.create();
  await program.start();
  const { body } = await program.api('POST', '/projects', { project: { name: 'bulk' } });
  const endpointId = body.endpoints[0].id;
  const direct = body.connection_uris[0].connection_uri;
  uris = { direct, pooled: direct.replace(endpointId, `${endpointId}-pooler`) };
  [proxyPid = 0] = await program.processPids('proxy');
  const steps = [
    'create unlogged table lines (line text)',
    'create unlogged table slow (line text)',
    'create function take_time() returns trigger language plpgsql as $$begin perform pg_sleep(0.02); return null; end$$',
    'create trigger slowly before insert on slow for each row execute function take_time()',
  ];
  for (const step of steps) await ask(direct, step);
});
afterAll(async () => {
  await Promise.all(sessions.map((sql) => sql.end({ timeout: 1 })));
  await program.destroy();
});

function open(uri: string, tls: boolean): postgres.Sql {
  const sql = postgres(uri, { max: 1, ssl: tls ? { rejectUnauthorized: false } : false, onnotice: () => {} });
  sessions.push(sql);
  return sql;
}

async function residentBytes(): Promise<number> {
  return 1024 * Number(/VmRSS:\s+(\d+)/.exec(await readFile(`/proc/${proxyPid}/status`, 'utf8'))?.[1]);
}

/** How much the proxy's memory grew at most while the work was done. */
async function growthDuring(what: string, work: () => Promise<unknown>): Promise<number> {
  const before = await residentBytes();
  const startedAt = performance.now();
  let peak = before;
  const timer = setInterval(async () => {
    peak = Math.max(peak, await residentBytes());
  }, 20);
  try {
    await work();
  } finally {
    clearInterval(timer);
  }
  const seconds = (performance.now() - startedAt) / 1000;
  if (process.env.CATNAP_TEST_FIGURES) {
    const grown = ((peak - before) / mb).toFixed(0);
    process.stdout.write(
      `${what}: ${seconds.toFixed(1)} s, proxy ${(before / mb).toFixed(0)} MB, grown by ${grown} MB\n`,
    );
  }
  return peak - before;
}

/** `count` times the same bytes, made as they are taken. */
function* repeated(text: string, count: number): Generator<string> {
  for (let n = 0; n < count; n++) yield text;
}

class Counter extends Writable {
  bytes = 0;
  /** How long it looks at the first bytes before it takes more. */
  readonly #pauseMs: number;

  constructor(pauseMs = 0) {
    super();
    this.#pauseMs = pauseMs;
  }

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    const isFirst = this.bytes === 0;
    this.bytes += chunk.length;
    if (isFirst && this.#pauseMs > 0) void thinkTime(this.#pauseMs).then(done);
    else done();
  }
}

const ways = [
  ['direct, plain', 'direct', false],
  ['pooled, TLS', 'pooled', true],
  ['pooled, plain', 'pooled', false],
  ['direct, TLS', 'direct', true],
] as const;

const timeout = usualTestMs + 300 * megabytes;

describe.each(megabytes > defaultMegabytes ? ways : ways.slice(0, 2))('%s', (title, host, tls) => {
  it('COPY in and out leave the memory flat, and a reader that stops is waited for', { timeout }, async () => {
    const sql = open(uris[host], tls);
    const rows = megabytes * 1_000;
    const goIn = async () => {
      await sql`truncate lines`;
      const chunks = Readable.from(repeated(row.repeat(100), rows / 100));
      await pipeline(chunks, await sql`copy lines from stdin`.writable());
    };
    expect(await growthDuring(`${title}: COPY in`, goIn)).toBeLessThan(growthMax);
    expect(await sql`select count(*)::int as n from lines`).toEqual([{ n: rows }]);
    const counter = new Counter(500);
    const goOut = async () => pipeline(await sql`copy lines to stdout`.readable(), counter);
    expect(await growthDuring(`${title}: COPY out, with a pause`, goOut)).toBeLessThan(growthMax);
    expect(counter.bytes).toBe(rows * row.length);
  });

  it('a server that takes its time makes the client wait', { timeout }, async () => {
    const sql = open(uris[host], tls);
    const line = `${'x'.repeat(2 * mb - 1)}\n`;
    const goIn = async () => {
      await pipeline(Readable.from(repeated(line, megabytes / 2)), await sql`copy slow from stdin`.writable());
    };
    expect(await growthDuring(`${title}: slow server`, goIn)).toBeLessThan(growthMax);
  });
});
