/** `catnap/testing`, for the tests of applications: reads the settings and hands them over. */
import {
  type FreshBranch,
  type FreshBranchOptions,
  makeFreshBranch,
  removeMade,
  withRemoval,
} from '../cli/testing/fresh-branch.ts';
import { type BranchStock, openStock, type StockOptions } from '../cli/testing/stock.ts';
import { removeByStock, takeFromStock } from '../cli/testing/stock-calls.ts';
import { localUrl, passOnBranchStock, readBranchStock, readConfig } from '../lib/config.ts';

export type { BranchStock, FreshBranch, FreshBranchOptions, StockOptions };

export async function freshBranch(options: FreshBranchOptions = {}): Promise<FreshBranch> {
  const stock = readBranchStock();
  const taken = stock === undefined || isOwn(options) ? null : await takeFromStock(stock, options);
  if (stock === undefined || taken === null) return makeFreshBranch(surroundings(), options);
  return withRemoval(taken, async () => {
    const isRemoved = await removeByStock(stock, taken.id);
    if (!isRemoved) await removeMade(surroundings(), options, taken);
  });
}

export async function stockBranches(options: StockOptions = {}): Promise<BranchStock> {
  const { path, close } = await openStock(surroundings(), options);
  passOnBranchStock(path);
  const end = () => {
    if (readBranchStock() === path) passOnBranchStock('');
    return close();
  };
  return { close: end, [Symbol.asyncDispose]: end };
}

/** What branches of a stock cannot have. */
const isOwn = ({ name, expiresInMinutes }: FreshBranchOptions) => name !== undefined || expiresInMinutes !== undefined;

function surroundings() {
  const config = readConfig();
  return { url: localUrl(config), home: config.home, folder: process.cwd(), apiKey: config.apiKey };
}
