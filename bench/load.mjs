/** Clients that run one statement after another for a while, and what came of it, second by second. */
import pg from 'pg';

/** Uses CPU and little else, in statements short enough to count. */
export const cpuPiece = 'select count(*) from generate_series(1, 20000)';

/** `onSecond` is called with the number of statements that were done in each second. */
export async function runLoad(connectionString, { clients, seconds, text = cpuPiece, onSecond = () => undefined }) {
  const counted = { done: 0, failed: 0 };
  const stopAt = performance.now() + seconds * 1_000;
  let before = 0;
  const timer = setInterval(() => {
    onSecond(counted.done - before);
    before = counted.done;
  }, 1_000);
  const run = async () => {
    const client = new pg.Client({ connectionString });
    client.on('error', () => counted.failed++);
    await client.connect();
    while (performance.now() < stopAt) {
      await client.query(text).then(
        () => counted.done++,
        () => counted.failed++,
      );
    }
    await client.end();
  };
  await Promise.all(Array.from({ length: clients }, run)).finally(() => clearInterval(timer));
  return { ...counted, perSecond: counted.done / seconds };
}
