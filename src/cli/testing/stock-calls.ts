/**
 * How a test file asks for a branch that was made ahead of time: a line of JSON each way, over a socket in a folder
 * that only the user of the test run can enter.
 */
import { connect } from 'node:net';
import type { FreshBranchOptions, MadeBranch } from './fresh-branch.ts';

export type StockCall = { readonly take: FreshBranchOptions } | { readonly remove: string };

/** `refused` is no error: the caller makes a branch of its own, or removes it itself. */
export type StockReply = { readonly branch: MadeBranch } | { readonly removed: true } | { readonly refused: true };

const refused: StockReply = { refused: true };

/** Null where there is no stock any more, or none of such branches. */
export async function takeFromStock(path: string, options: FreshBranchOptions): Promise<MadeBranch | null> {
  const reply = await call(path, { take: options });
  return 'branch' in reply ? reply.branch : null;
}

/** False for a branch that no stock removes. */
export async function removeByStock(path: string, id: string): Promise<boolean> {
  return 'removed' in (await call(path, { remove: id }));
}

function call(path: string, request: StockCall): Promise<StockReply> {
  return new Promise((resolve) => {
    const socket = connect(path);
    const texts: string[] = [];
    socket.setEncoding('utf8').on('data', (text: string) => texts.push(text));
    // A stock that ends meanwhile has no answer.
    socket.on('error', () => resolve(refused));
    socket.on('close', () => resolve(parseReply(texts.join(''))));
    socket.write(`${JSON.stringify(request)}\n`);
  });
}

function parseReply(text: string): StockReply {
  return text.endsWith('\n') ? (JSON.parse(text) as StockReply) : refused;
}
