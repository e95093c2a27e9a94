/** One statement over a new connection, with the driver most people use. */
import pg from 'pg';

/** The first value of the first row, as text; empty when there is none. */
export async function ask(uri: string, text: string): Promise<string> {
  const client = new pg.Client({ connectionString: uri });
  client.on('error', () => {});
  await client.connect();
  try {
    const [row] = (await client.query(text)).rows;
    return row === undefined ? '' : String(Object.values(row)[0]);
  } finally {
    await client.end();
  }
}
