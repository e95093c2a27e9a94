/**
 * A stock of fresh branches for a run of tests: the process that starts the run makes them ahead of time, with their
 * computes awake, and its test files take them over a socket. One that is taken is replaced at once. Those that nobody
 * takes, and those that a killed test file has left, are removed when the stock is closed; should the whole run be
 * killed, each of them removes itself.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import {
  type FreshBranch,
  type FreshBranchOptions,
  makeFreshBranch,
  type Surroundings,
  usualMinutes,
} from './fresh-branch.ts';
import type { StockCall, StockReply } from './stock-calls.ts';

export interface StockOptions extends Omit<FreshBranchOptions, 'name'> {
  readonly count?: number;
}

export interface BranchStock {
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface OpenStock extends BranchStock {
  /** Of its socket. */
  readonly path: string;
}

const usualCount = 2;
/** A test file that gets a branch has at least this part of its life before it. */
const leastPart = 1 / 2;

/** Resolves when as many branches are ready as were asked for. */
export async function openStock(around: Surroundings, options: StockOptions): Promise<OpenStock> {
  const { count = usualCount, ...branches } = options;
  if (!Number.isInteger(count) || count < 1) throw new RangeError('the count of a stock is an integer of 1 and more');
  const stock = new Stock(() => makeFreshBranch(around, branches), branches, count);
  const folder = await mkdtemp(join(tmpdir(), 'catnap-stock-'));
  const path = join(folder, 'socket');
  const server = createServer((socket) => serve(stock, socket));
  const close = async () => {
    server.close();
    await rm(folder, { recursive: true, force: true });
    await stock.close();
  };
  try {
    await listen(server, path);
    await stock.fill();
  } catch (error) {
    await close();
    throw error;
  }
  // A run that forgets to close it ends all the same.
  server.unref();
  return { path, close, [Symbol.asyncDispose]: close };
}

interface Ready {
  readonly branch: FreshBranch;
  readonly madeAt: number;
}

/** Called with null when there will be no branch. */
type Taker = (branch: FreshBranch | null) => void;

class Stock {
  readonly #make: () => Promise<FreshBranch>;
  readonly #options: FreshBranchOptions;
  readonly #count: number;
  readonly #ready: Ready[] = [];
  readonly #takers: Taker[] = [];
  readonly #making = new Set<Promise<unknown>>();
  /** Taken, and not removed yet. */
  readonly #taken = new Map<string, FreshBranch>();
  #isClosed = false;

  constructor(make: () => Promise<FreshBranch>, options: FreshBranchOptions, count: number) {
    this.#make = make;
    this.#options = options;
    this.#count = count;
  }

  async fill(): Promise<void> {
    this.#makeMissing();
    await Promise.all(this.#making);
  }

  /** What a test file leaves out is as the stock has it. */
  has(asked: FreshBranchOptions): boolean {
    const own: Readonly<Record<string, unknown>> = { ...this.#options };
    return !this.#isClosed && Object.entries(asked).every(([name, value]) => value === own[name]);
  }

  /** Returns how to take the question back. */
  take(taker: Taker): () => void {
    this.#takers.push(taker);
    this.#serveTakers();
    return () => {
      const index = this.#takers.indexOf(taker);
      if (index >= 0) this.#takers.splice(index, 1);
    };
  }

  /** False for a branch that is not of this stock. */
  async remove(id: string): Promise<boolean> {
    const branch = this.#taken.get(id);
    if (branch === undefined) return false;
    await branch.remove();
    this.#taken.delete(id);
    return true;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const taker of this.#takers.splice(0)) taker(null);
    await Promise.allSettled(this.#making);
    const left = [...this.#ready.splice(0).map(({ branch }) => branch), ...this.#taken.values()];
    // What cannot be removed now removes itself later.
    await Promise.allSettled(left.map((branch) => branch.remove()));
  }

  #serveTakers(): void {
    const longestMs = (this.#options.expiresInMinutes ?? usualMinutes) * 60_000 * leastPart;
    while (this.#takers.length > 0) {
      const next = this.#ready.shift();
      if (next === undefined) break;
      this.#taken.set(next.branch.id, next.branch);
      if (performance.now() - next.madeAt > longestMs) void this.remove(next.branch.id).catch(() => undefined);
      else this.#takers.shift()?.(next.branch);
    }
    this.#makeMissing();
  }

  #makeMissing(): void {
    if (this.#isClosed) return;
    const missing = this.#count + this.#takers.length - this.#ready.length - this.#making.size;
    for (let made = 0; made < missing; made++) {
      const making = this.#makeOne().finally(() => this.#making.delete(making));
      this.#making.add(making);
      // Whoever waits for it hears of it; the next taker tries again.
      making.catch(() => this.#takers.shift()?.(null));
    }
  }

  async #makeOne(): Promise<void> {
    const madeAt = performance.now();
    const branch = await this.#make();
    this.#ready.push({ branch, madeAt });
    if (!this.#isClosed) this.#serveTakers();
  }
}

/** One question for each connection. */
function serve(stock: Stock, socket: Socket): void {
  const reply = (answer: StockReply) => void socket.end(`${JSON.stringify(answer)}\n`);
  // The test file was killed.
  socket.on('error', () => undefined);
  createInterface({ input: socket }).once('line', (line) => {
    const call = parseCall(line);
    if (call !== null && 'remove' in call) {
      const isOver = stock.remove(call.remove);
      void isOver.catch(() => false).then((removed) => reply(removed ? { removed } : { refused: true }));
    } else if (call !== null && stock.has(call.take)) {
      const takeBack = stock.take((found) => reply(found === null ? { refused: true } : { branch: factsOf(found) }));
      socket.on('close', takeBack);
    } else reply({ refused: true });
  });
}

/** Null for half a line. */
function parseCall(line: string): StockCall | null {
  try {
    return JSON.parse(line) as StockCall;
  } catch {
    return null;
  }
}

const factsOf = ({ id, name, projectId, uri }: FreshBranch) => ({ id, name, projectId, uri });

function listen(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(path, () => resolve());
  });
}
