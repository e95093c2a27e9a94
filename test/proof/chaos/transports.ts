/** The ways on which clients write: each makes a session that inserts one row at a time and can be cut off. */
import { neon, neonConfig, Client as ServerlessClient } from '@neondatabase/serverless';
import pg from 'pg';
import { WebSocket } from 'ws';

export const transportNames = ['direct', 'pooled', 'SQL over HTTP', 'WebSocket'] as const;
export type TransportName = (typeof transportNames)[number];

export interface Session {
  insert(writer: string, number: number): Promise<void>;
  /** At once, whatever is under way. */
  cut(): void;
}

export interface Place {
  readonly uri: string;
  readonly endpointId: string;
  readonly httpPort: number;
}

/** No answer within this time is none: something is stopped, and the next try may find what was started meanwhile. */
const answerMsMax = 10_000;
const insertText = 'insert into written (writer, number) values ($1, $2)';

export function openSession(transport: TransportName, place: Place): Promise<Session> {
  const pooled = place.uri.replace(place.endpointId, `${place.endpointId}-pooler`);
  switch (transport) {
    case 'direct':
      return openPostgres(place.uri);
    case 'pooled':
      return openPostgres(pooled);
    case 'SQL over HTTP':
      return openHttp(place);
    case 'WebSocket':
      return openWebSocket(place);
  }
}

async function openPostgres(connectionString: string): Promise<Session> {
  const client = new pg.Client({
    connectionString,
    connectionTimeoutMillis: answerMsMax,
    query_timeout: answerMsMax,
  });
  client.on('error', () => {});
  const cut = () => {
    client.end().catch(() => undefined);
    streamOf(client)?.destroy?.();
  };
  await client.connect().catch((error: unknown) => {
    cut();
    throw error;
  });
  return { cut, insert: async (writer, number) => void (await client.query(insertText, [writer, number])) };
}

async function openHttp({ uri, httpPort }: Place): Promise<Session> {
  neonConfig.fetchEndpoint = `http://127.0.0.1:${httpPort}/sql`;
  return {
    cut: () => undefined,
    insert: async (writer, number) => {
      const sql = neon(uri, { fetchOptions: { signal: AbortSignal.timeout(answerMsMax) } });
      await sql.query(insertText, [writer, number]);
    },
  };
}

async function openWebSocket({ uri, httpPort }: Place): Promise<Session> {
  neonConfig.webSocketConstructor = WebSocket;
  neonConfig.wsProxy = `127.0.0.1:${httpPort}/v2`;
  neonConfig.useSecureWebSocket = false;
  const client = new ServerlessClient(uri);
  client.on('error', () => {});
  const cut = () => {
    client.end().catch(() => undefined);
    streamOf(client)?.destroy?.();
  };
  await within(client.connect()).catch((error: unknown) => {
    cut();
    throw error;
  });
  return {
    cut,
    insert: async (writer, number) => void (await within(client.query(insertText, [writer, number]))),
  };
}

async function within<T>(work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const tooLate = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${answerMsMax} ms`)), answerMsMax);
  });
  try {
    return await Promise.race([work, tooLate]);
  } finally {
    clearTimeout(timer);
    work.catch(() => undefined);
  }
}

/** The drivers have no way of their own to drop a connection that does not answer. */
function streamOf(client: object): { destroy?(): void } | undefined {
  return (client as { connection?: { stream?: { destroy?(): void } } }).connection?.stream;
}
