/**
 * What a person would write in place of SQL over HTTP: one route of a bare Fastify with a pool of `pg`, in a process of
 * its own. Started with the login of a server, it sends its port to its parent.
 */
import Fastify from 'fastify';
import pg from 'pg';

const pool = new pg.Pool({ ...JSON.parse(process.argv[2]), max: 10 });
const app = Fastify();
app.post('/sql', async ({ body: { query, params } }) => {
  const { rows, fields, command, rowCount } = await pool.query(query, params);
  return { rows, fields, command, rowCount };
});
await app.listen({ host: '127.0.0.1', port: 0 });
process.send(app.server.address().port);
process.once('disconnect', () => process.exit());
