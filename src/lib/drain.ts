/**
 * How an HTTP server stops without losing a request: it accepts no connection any more, answers what arrives over those
 * that it has, asks each caller to close, and ends the idle ones when no caller has used one for a moment.
 */
import type { Server, ServerResponse } from 'node:http';
import { Server as NetServer } from 'node:net';
import { delay } from './clock.ts';

/** A request that was sent before the caller saw the last reply arrives sooner. */
const quietMs = 300;
const lookMs = 20;

export interface Drain {
  /** Accepts no more; resolves when every request is answered, or after `ms`. */
  finish(ms: number): Promise<void>;
  /** Afterwards: ends idle connections, and resolves when the last one is closed. */
  close(): Promise<void>;
}

/** Call it before the server gets its first request. */
export function drainOf(server: Server): Drain {
  const underWay = new Set<ServerResponse>();
  let closed: Promise<void> = Promise.resolve();
  let isDraining = false;
  let lastMs = 0;
  const askToClose = (response: ServerResponse) => {
    if (!response.headersSent) response.setHeader('connection', 'close');
  };
  // Before the handler, which may answer at once.
  server.prependListener('request', (_request, response) => {
    underWay.add(response);
    if (isDraining) askToClose(response);
    response.once('close', () => {
      underWay.delete(response);
      lastMs = performance.now();
    });
  });
  return {
    async finish(ms) {
      isDraining = true;
      lastMs = performance.now();
      closed = stopAccepting(server);
      for (const response of underWay) askToClose(response);
      const endsMs = lastMs + ms;
      const isQuiet = () => underWay.size === 0 && performance.now() - lastMs >= quietMs;
      while (performance.now() < endsMs && !isQuiet() && (await hasConnections(server))) await delay(lookMs);
    },
    async close() {
      if (server instanceof NetServer) server.close();
      server.closeIdleConnections();
      await closed;
    },
  };
}

/** Resolves when every connection is closed. */
function stopAccepting(server: Server): Promise<void> {
  return new Promise((resolve) => {
    // `close` of an HTTP server would also end its idle connections, and a request may be on its way over one of them.
    if (server instanceof NetServer) NetServer.prototype.close.call(server, () => resolve());
    // On Bun it is no server of `node:net`.
    else (server as Server).close(() => resolve());
  });
}

async function hasConnections(server: Server): Promise<boolean> {
  if (!(server instanceof NetServer)) return true;
  return new Promise((resolve) => server.getConnections((error, count) => resolve(error !== null || count > 0)));
}
