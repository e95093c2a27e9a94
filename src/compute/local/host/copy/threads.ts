/**
 * Threads that copy files, kept for the next copy: starting one takes as long as cloning a thousand files. They keep
 * the process alive only while they have work.
 */
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { type CopyOrder, type CopyOutcome, runCopies } from './files.ts';

/** At least two, so that one large file does not delay the others; more than four only wait for the disk. */
export const copyThreadCount = Math.min(4, Math.max(2, availableParallelism()));

const idle: Worker[] = [];
const waiting: ((thread: Worker) => void)[] = [];
let running = 0;

/** Starts the threads before the first copy needs them. */
export function startCopyThreads(): void {
  while (running < copyThreadCount) idle.push(startThread());
}

/** Works on an order in one thread, for one turn; several calls with the same order share it. */
export async function copyInThread(order: CopyOrder): Promise<CopyOutcome> {
  const thread = await takeThread();
  thread.ref();
  const outcome = await ask(thread, order);
  giveBack(thread);
  return outcome;
}

function startThread(): Worker {
  running++;
  const options = { eval: true, env: {}, resourceLimits: { maxOldGenerationSizeMb: 64 } };
  const thread = new Worker(`(${runCopies.toString()})()`, options);
  thread.unref();
  // The caller that waits for the thread gets the error too; without this listener it would end the process.
  thread.on('error', () => undefined);
  thread.on('exit', () => replace(thread));
  return thread;
}

function replace(gone: Worker): void {
  running--;
  const index = idle.indexOf(gone);
  if (index >= 0) idle.splice(index, 1);
  if (waiting.length > 0) waiting.shift()?.(startThread());
}

function takeThread(): Promise<Worker> | Worker {
  const free = idle.pop();
  if (free) return free;
  if (running < copyThreadCount) return startThread();
  return new Promise((resolve) => waiting.push(resolve));
}

function giveBack(thread: Worker): void {
  const next = waiting.shift();
  if (next) {
    next(thread);
  } else {
    thread.unref();
    idle.push(thread);
  }
}

function ask(thread: Worker, order: CopyOrder): Promise<CopyOutcome> {
  return new Promise((resolve, reject) => {
    const forget = () => {
      thread.off('message', onMessage);
      thread.off('error', onError);
      thread.off('exit', onExit);
    };
    const onMessage = (outcome: CopyOutcome) => {
      forget();
      resolve(outcome);
    };
    const onError = (error: Error) => {
      forget();
      reject(error);
    };
    const onExit = () => onError(new Error('a thread that copies files ended'));
    thread.on('message', onMessage);
    thread.on('error', onError);
    thread.on('exit', onExit);
    thread.postMessage(order);
  });
}
