/**
 * A bare Fastify that answers with the same statements: it looks up the key, calls the rules of `src/core`, and sends
 * what they return. No schemas, limits, logs or metrics. In a process of its own, started with the home of a Catnap.
 */
import Fastify from 'fastify';
import { loadSource } from '../scripts/load-source.mjs';

const home = process.argv[2];
const source = await loadSource([
  'core/api-key',
  'core/context',
  'core/endpoint',
  'core/project',
  'core/role',
  'db/client',
  'lib/clock',
  'lib/config',
  'lib/secrets',
  'machine/key-files',
  'machine/system-database',
]);
const { authenticate } = source['core/api-key'];
const { readScope, commandScope } = source['core/context'];
const { createRole, deleteRole } = source['core/role'];
const config = source['lib/config'].readConfig({ CATNAP_HOME: home });
const secretKey = await source['machine/key-files'].ensureSecretKey(config, false);
const options = await source['machine/system-database'].systemDatabaseOptions(config);
const core = {
  database: source['db/client'].openDatabase(options, { poolSize: 10, name: 'catnap-bench-peer' }),
  box: source['lib/secrets'].createSecretBox(Buffer.from(secretKey, 'base64')),
  clock: source['lib/clock'].systemClock,
  config,
};
const callerOf = ({ headers }) => authenticate(readScope(core), headers.authorization.slice('Bearer '.length));
const page = { organizationId: null, search: null, cursor: null, limit: 20, recoverable: false };

const app = Fastify();
app.get('/api/v2/projects/:project/endpoints/:endpoint', async (request) => {
  const { project, endpoint } = request.params;
  return source['core/endpoint'].getEndpoint(readScope(core), await callerOf(request), project, endpoint);
});
app.get('/api/v2/projects', async (request) => {
  const { projects } = await source['core/project'].listProjects(readScope(core), await callerOf(request), page);
  return { projects };
});
app.post('/api/v2/projects/:project/branches/:branch/roles', async (request, reply) => {
  const address = { projectId: request.params.project, branchId: request.params.branch, name: request.body.role.name };
  const caller = await callerOf(request);
  reply.status(201);
  return core.database.transaction((tx) => createRole(commandScope(core, tx), caller, { ...address, noLogin: false }));
});
app.delete('/api/v2/projects/:project/branches/:branch/roles/:name', async (request) => {
  const { project: projectId, branch: branchId, name } = request.params;
  const caller = await callerOf(request);
  return core.database.transaction((tx) => deleteRole(commandScope(core, tx), caller, { projectId, branchId, name }));
});
await app.listen({ host: '127.0.0.1', port: 0 });
process.send(app.server.address().port);
process.once('disconnect', () => process.exit());
